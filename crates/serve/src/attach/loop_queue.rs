//! The properties of the loop device as a block device (Documentation/ABI/stable/sysfs-block): the one that the
//! attachment needs otherwise is changed, read back, and restored; the rest is held against what was asked.

use std::fs;
use std::path::PathBuf;

use plumb_linux::apart;

use super::served::Served;
use crate::error::{ExportError, Result, at};

/// The kernel keeps the limit when the loop device is bound to another file, so it has to be put back.
const LIMIT: &str = "max_sectors_kb";

/// What was changed at a loop device, to be [restored](Changed::restore) while it is still ours.
#[derive(Debug)]
pub(super) struct Changed {
    queue: Attributes,
    limit_before: Option<String>,
}

/// Sets the limits of `/dev/loopN` where the device needs it, and checks what the kernel made of the rest.
pub(super) fn set_up(number: u32, served: &Served) -> Result<Changed> {
    let queue = Attributes { directory: PathBuf::from(format!("/sys/block/loop{number}/queue")) };
    queue.expect("logical_block_size", &served.geometry.block.to_string())?;
    // Else no flush would ever be sent.
    queue.expect("write_cache", "write back")?;
    let mut changed = Changed { queue, limit_before: None };
    if let Some(limit) = served.loop_request_max() {
        let before = changed.queue.get(LIMIT)?;
        changed.queue.set(LIMIT, &(limit.0 / 1024).to_string())?;
        changed.limit_before = Some(before);
    }
    Ok(changed)
}

impl Changed {
    /// Puts back what was changed.
    pub(super) fn restore(self) -> Result<()> {
        self.limit_before.map_or(Ok(()), |before| self.queue.set(LIMIT, &before))
    }
}

#[derive(Debug)]
struct Attributes {
    directory: PathBuf,
}

impl Attributes {
    fn set(&self, name: &str, value: &str) -> Result<()> {
        let path = self.directory.join(name);
        // It waits for what is in flight.
        apart::write(path.clone(), value.to_owned()).map_err(at("set", &path))?;
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
