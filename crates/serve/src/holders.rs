//! Description of the users of our block devices: mounts, stacked devices, and processes that have them open.

use std::fmt::{self, Display};
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::Path;

use plumb_linux::inventory::Inventory;
use plumb_linux::probe::LiveProbe;
use plumb_linux::tree::LiveTree;
use plumb_linux::tree::process::name;

/// One binding of a loop device to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LoopBinding {
    /// N of /dev/loopN.
    pub(crate) number: u32,
    /// Number that the kernel gives each binding (`diskseq`); before Linux 5.15 the path of the file, which
    /// files in other mount namespaces may have as well.
    identity: String,
}

impl LoopBinding {
    /// Returns the present binding of a device; `None` if it is free.
    pub(crate) fn read(number: u32) -> Option<Self> {
        let text = |name| fs::read_to_string(format!("/sys/block/loop{number}/{name}")).ok();
        let file = text("loop/backing_file")?;
        Some(Self { number, identity: text("diskseq").unwrap_or(file).trim_end().to_owned() })
    }

    /// Reads a binding back from the form in which it is displayed.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let (number, identity) = line.strip_prefix("loop")?.split_once(' ')?;
        Some(Self { number: number.parse().ok()?, identity: identity.to_owned() })
    }

    /// Returns true if the device has not been freed since.
    pub(crate) fn is_there(&self) -> bool {
        Self::read(self.number).as_ref() == Some(self)
    }
}

impl fmt::Display for LoopBinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "loop{} {}", self.number, self.identity)
    }
}

/// Returns all users of the device `disk` in /sys/block, except the descriptors `own` of this process. If
/// this cannot be determined, it counts as in use.
pub(crate) fn users_of(disk: &str, own: &[BorrowedFd<'_>]) -> Vec<String> {
    let unknown = |source: &dyn Display| vec![format!("perhaps in use: cannot read {source}")];
    let mut found = match Inventory::read(&LiveTree, &LiveProbe) {
        Ok(inventory) => inventory.uses(disk).iter().map(ToString::to_string).collect(),
        Err(error) => unknown(&error),
    };
    found.extend(
        openers(&format!("/dev/{disk}"), own).unwrap_or_else(|error| unknown(&format!("/proc ({error})"))),
    );
    found
}

fn openers(device: &str, own: &[BorrowedFd<'_>]) -> io::Result<Vec<String>> {
    let processes = fs::read_dir("/proc")?;
    let this = std::process::id();
    let mut found = Vec::new();
    for pid in processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok()) {
        let Ok(files) = fs::read_dir(format!("/proc/{pid}/fd")) else { continue };
        let is_user = files.flatten().any(|file| {
            let is_device = fs::read_link(file.path()).is_ok_and(|target| target == Path::new(device));
            let number = file.file_name().to_str().and_then(|name| name.parse::<i32>().ok());
            let is_own = pid == this && own.iter().any(|own| Some(own.as_raw_fd()) == number);
            is_device && !is_own
        });
        if is_user {
            found.push(format!("open in process {pid} ({})", name(&LiveTree, pid)));
        }
    }
    Ok(found)
}
