//! Properties of the loop device as a block device (Documentation/ABI/stable/sysfs-block). Unsuitable ones
//! are changed, verified, and restored later; the others are checked against what was requested.

use std::fs;
use std::path::PathBuf;

use plumb_linux::isolated_thread;

use super::served::ServedLoop;
use crate::error::{ExportError, Result, at};

/// The kernel keeps this setting when the loop device is bound to another file, so it must be restored.
const LIMIT: &str = "max_sectors_kb";
const READ_AHEAD: &str = "read_ahead_kb";

/// Changed settings of a loop device, to be [restored](LoopSettings::restore) while the device is still ours.
#[derive(Debug)]
pub(super) struct LoopSettings {
    queue: Attributes,
    /// Names of the settings with their previous values.
    before: Vec<(&'static str, String)>,
}

/// Sets the limits of `/dev/loopN` that the device needs, and checks the others.
pub(super) fn set_up(number: u32, served: &ServedLoop) -> Result<LoopSettings> {
    let queue = Attributes { directory: PathBuf::from(format!("/sys/block/loop{number}/queue")) };
    queue.expect("logical_block_size", &served.geometry.block.to_string())?;
    // Without a write-back cache the kernel would never send a flush.
    queue.expect("write_cache", "write back")?;
    let mut changed = LoopSettings { queue, before: Vec::new() };
    if let Some(limit) = served.loop_request_max() {
        changed.change(LIMIT, &(limit.0 / 1024).to_string())?;
    }
    if !served.reads_ahead {
        changed.change(READ_AHEAD, "0")?;
    }
    Ok(changed)
}

impl LoopSettings {
    fn change(&mut self, name: &'static str, value: &str) -> Result<()> {
        let before = self.queue.get(name)?;
        self.queue.set(name, value)?;
        self.before.push((name, before));
        Ok(())
    }

    /// Restores the changed settings.
    pub(super) fn restore(self) -> Result<()> {
        self.before.iter().try_for_each(|(name, before)| self.queue.set(name, before))
    }
}

#[derive(Debug)]
struct Attributes {
    directory: PathBuf,
}

impl Attributes {
    fn set(&self, name: &str, value: &str) -> Result<()> {
        let path = self.directory.join(name);
        // The write waits for requests in flight.
        isolated_thread::write(path.clone(), value.to_owned()).map_err(at("set", &path))?;
        self.expect(name, value)
    }

    fn get(&self, name: &str) -> Result<String> {
        let path = self.directory.join(name);
        Ok(fs::read_to_string(&path).map_err(at("read", &path))?.trim().to_owned())
    }

    fn expect(&self, name: &str, wanted: &str) -> Result<()> {
        let found = self.get(name)?;
        if found == wanted {
            return Ok(());
        }
        let path = self.directory.join(name);
        Err(ExportError::Kernel(format!("{} is {found:?} and must be {wanted:?}", path.display())))
    }
}
