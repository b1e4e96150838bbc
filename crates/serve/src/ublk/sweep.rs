//! Taking away what servers that were killed have left: devices that nobody serves, and their records.

use std::fs;
use std::path::Path;

use super::driver::{Driver, MARK, block_path};
use super::records::Base;
use crate::error::Result;
use crate::holders;
use crate::records::{Found, Lock, Swept};

/// Removes devices of this program whose server no longer runs and that nobody uses; records are in `directory`, the default
/// if `None`. Does nothing where there is no driver.
///
/// # Errors
/// If the directory or the driver cannot be used. What cannot be removed is no error but [`kept`](Swept::kept).
pub fn sweep(directory: Option<&Path>) -> Result<Swept> {
    if !Path::new("/dev/ublk-control").exists() {
        return Ok(Swept::default());
    }
    let mut driver = Driver::open()?;
    let base = Base::open(directory)?;
    let locked = base.lock()?;
    sweep_locked(&mut driver, &base, &locked)
}

pub(super) fn sweep_locked(driver: &mut Driver, base: &Base, locked: &Lock) -> Result<Swept> {
    let mut numbers = base.numbers()?;
    numbers.extend(of_the_kernel());
    numbers.sort_unstable();
    numbers.dedup();
    let mut swept = Swept::default();
    for number in numbers {
        let name = block_path(number).display().to_string();
        let found = base.find(number, locked)?;
        let info = driver.info(number)?.filter(|info| info.mark == MARK);
        match (&found, info) {
            (Found::Served, _) | (Found::None, None) => continue,
            // Records are written under the lock, so one that is missing was never written, or belongs to a server of
            // another directory, which may live.
            (Found::None, Some(info)) if Path::new(&format!("/proc/{}", info.pid)).exists() => continue,
            (_, None) => {}
            (_, Some(_)) => {
                if let Err(why) = remove(driver, number) {
                    swept.kept.push((name, why));
                    continue;
                }
            }
        }
        if let Found::Dead(record) = found {
            record.remove()?;
        }
        swept.removed.push(name);
    }
    Ok(swept)
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

/// The numbers of all devices of the driver, whosever they are.
fn of_the_kernel() -> Vec<u32> {
    let Ok(devices) = fs::read_dir("/sys/class/ublk-char") else { return Vec::new() };
    let number = |name: &str| name.strip_prefix("ublkc")?.parse().ok();
    devices.flatten().filter_map(|device| number(device.file_name().to_str()?)).collect()
}
