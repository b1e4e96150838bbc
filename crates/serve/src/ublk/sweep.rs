//! Removal of the remains of killed servers: unserved devices and their records.

use std::fs;
use std::path::Path;

use plumb_state::{DirectoryLock, Owner};

use super::driver::{Driver, MARK, block_path};
use super::records::{Base, Record};
use crate::error::Result;
use crate::holders;
use crate::records::Swept;

/// Control node of the driver.
const DRIVER: &str = "/dev/ublk-control";

/// Removes unused devices of this program whose server has ended; records are in `directory`, the default if
/// `None`. Does nothing without the driver.
///
/// # Errors
/// If the directory or the driver is unusable. Items that cannot be removed are not an error but listed in
/// [`kept`](Swept::kept).
pub fn sweep(directory: Option<&Path>) -> Result<Swept> {
    if !Path::new(DRIVER).exists() {
        return Ok(Swept::default());
    }
    let mut driver = Driver::open()?;
    let base = Base::open(directory)?;
    let locked = base.lock()?;
    sweep_locked(&mut driver, &base, &locked)
}

/// Returns the block devices of this program whose server has ended, by the records in the default directory;
/// none while another process exports or removes one. Changes nothing.
///
/// # Errors
/// If there are records, and they or the driver cannot be read.
pub fn unserved() -> Result<Vec<String>> {
    let Some(base) = Path::new(DRIVER).exists().then(Base::open_default).transpose()?.flatten() else {
        return Ok(Vec::new());
    };
    let Some(locked) = base.try_lock()? else { return Ok(Vec::new()) };
    let dead = dead(&mut Driver::open()?, &base, &locked)?;
    Ok(dead.iter().map(|dead| block_path(dead.number).display().to_string()).collect())
}

/// Returns the number of the block device that waits for a server of the contents `identity`, by the records
/// in the default directory.
///
/// # Errors
/// If the directory or the driver is unusable.
pub fn waiting(identity: &str) -> Result<Option<u32>> {
    if !Path::new(DRIVER).exists() {
        return Ok(None);
    }
    waiting_in(None, identity)
}

/// Returns the number of a waiting block device, as [`waiting`] does, by the records in `directory`.
pub(super) fn waiting_in(directory: Option<&Path>, identity: &str) -> Result<Option<u32>> {
    let mut driver = Driver::open()?;
    let base = Base::open(directory)?;
    let locked = base.lock()?;
    let is_same = |dead: &Dead| {
        dead.has_device && dead.record.as_ref().is_some_and(|record| record.identity == identity)
    };
    Ok(dead(&mut driver, &base, &locked)?.into_iter().find(is_same).map(|dead| dead.number))
}

pub(super) fn sweep_locked(driver: &mut Driver, base: &Base, locked: &DirectoryLock) -> Result<Swept> {
    let mut swept = Swept::default();
    for Dead { number, record, has_device } in dead(driver, base, locked)? {
        let name = block_path(number).display().to_string();
        if has_device && let Err(why) = remove(driver, number) {
            swept.kept.push((name, why));
            continue;
        }
        record.map_or(Ok(()), |record| record.remove())?;
        swept.removed.push(name);
    }
    Ok(swept)
}

/// A device with a dead server.
struct Dead {
    number: u32,
    /// Record of the device, if its server wrote one.
    record: Option<Record>,
    /// True if the kernel still has the device.
    has_device: bool,
}

fn dead(driver: &mut Driver, base: &Base, locked: &DirectoryLock) -> Result<Vec<Dead>> {
    let mut numbers = base.numbers()?;
    numbers.extend(of_the_kernel());
    numbers.sort_unstable();
    numbers.dedup();
    let mut all = Vec::new();
    for number in numbers {
        let found = base.find(number, locked)?;
        let info = driver.info(number)?.filter(|info| info.mark == MARK);
        let record = match (found, &info) {
            (Owner::Alive, _) | (Owner::None, None) => continue,
            // Records are written under the lock, so a missing one was never written, or belongs to a server
            // with another directory, which may be alive.
            (Owner::None, Some(info)) if Path::new(&format!("/proc/{}", info.pid)).exists() => continue,
            (Owner::None, Some(_)) => None,
            (Owner::Dead(record), _) => Some(record),
        };
        all.push(Dead { number, record, has_device: info.is_some() });
    }
    Ok(all)
}

fn remove(driver: &mut Driver, number: u32) -> std::result::Result<(), String> {
    let users = holders::users_of(&format!("ublkb{number}"), &[]);
    if !users.is_empty() {
        let how = format!("`plumb drive serve ... --ublk --recover {number}` takes it over");
        return Err(format!("{}; {how}", users.join("; ")));
    }
    let removed = driver.stop(number).and_then(|()| driver.delete(number));
    removed.map_err(|error| plumb_block::in_one_line(&error))
}

/// Returns the numbers of all devices of the driver, including foreign ones.
fn of_the_kernel() -> Vec<u32> {
    let Ok(devices) = fs::read_dir("/sys/class/ublk-char") else { return Vec::new() };
    let number = |name: &str| name.strip_prefix("ublkc")?.parse().ok();
    devices.flatten().filter_map(|device| number(device.file_name().to_str()?)).collect()
}
