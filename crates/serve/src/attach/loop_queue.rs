//! The properties of the loop device as a block device (Documentation/ABI/stable/sysfs-block): those that the
//! attachment needs otherwise are changed, read back, and restored; the rest is held against what was asked.

use std::fs;
use std::path::PathBuf;

use plumb_linux::isolated_thread;

use super::served::ServedLoop;
use crate::error::{ExportError, Result, at};

/// The kernel keeps these when the loop device is bound to another file, so they have to be put back.
const LIMIT: &str = "max_sectors_kb";
const READ_AHEAD: &str = "read_ahead_kb";

/// Settings changed at a loop device, to be [restored](LoopSettings::restore) while the device is still ours.
#[derive(Debug)]
pub(super) struct LoopSettings {
    queue: Attributes,
    /// Names of the settings, and their values before the change.
    before: Vec<(&'static str, String)>,
}

/// Sets the limits of `/dev/loopN` where the device needs it, and checks what the kernel made of the rest.
pub(super) fn set_up(number: u32, served: &ServedLoop) -> Result<LoopSettings> {
    let queue = Attributes { directory: PathBuf::from(format!("/sys/block/loop{number}/queue")) };
    queue.expect("logical_block_size", &served.geometry.block.to_string())?;
    // Else no flush would ever be sent.
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

    /// Puts back what was changed.
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
