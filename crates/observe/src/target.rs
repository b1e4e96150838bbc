//! Target of an observation: the devices below the named object, and the scope of the syncs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt};
use std::path::Path;

use plumb_linux::inventory::{BlockKind, Inventory};
use plumb_linux::probe::LiveProbe;
use plumb_linux::tracing::instance::device_number;
use plumb_linux::tree::process::field;
use plumb_linux::tree::{DeviceNumber, LiveTree, Tree as _};
use plumb_path::survey::survey_path;

use crate::device::WatchedDevice;
use crate::syncs::Scope;

/// Largest number of open files of a process whose devices are looked up.
const PLACES_MAX: usize = 32;

/// Target as named by the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestedTarget {
    /// A path, or a block device.
    Place(String),
    /// A process.
    Process(u32),
    /// Every disk.
    All,
}

/// Target of an observation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Name as typed.
    pub shown: String,
    /// Devices, those directly below the target first.
    pub devices: Vec<WatchedDevice>,
    /// Processes whose syncs count.
    pub scope: Scope,
    /// Process number, if the target is a process.
    pub process: Option<u32>,
    /// Notes for the user on the choice.
    pub notes: Vec<String>,
}

impl Target {
    /// Returns true if every disk is observed.
    pub fn is_all(&self) -> bool {
        matches!(self.scope, Scope::All)
    }
}

/// Error of a target that cannot be observed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoTarget {
    shown: String,
    reason: String,
}

impl fmt::Display for NoTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot observe {}: {}", self.shown, self.reason)
    }
}

impl std::error::Error for NoTarget {}

impl RequestedTarget {
    /// Parses the typed name: a number is a process; a file with such a name must be written as `./1234`.
    pub fn parse(typed: &str) -> Self {
        typed.parse().map_or_else(|_| Self::Place(typed.to_owned()), Self::Process)
    }

    /// Finds the devices.
    ///
    /// # Errors
    /// Fails if there are no devices, or the target does not exist.
    pub fn find(&self) -> Result<Target, NoTarget> {
        let shown = match self {
            Self::Place(place) => place.clone(),
            Self::Process(process) => format!("process {process}"),
            Self::All => "all disks".to_owned(),
        };
        let no = |reason: String| {
            // The error of the survey starts with the target, which the caller names as well, so that prefix
            // is removed.
            let own = reason.strip_prefix(&format!("cannot survey {shown}: ")).map(str::to_owned);
            NoTarget { shown: shown.clone(), reason: own.unwrap_or(reason) }
        };
        let (tree, probe) = (LiveTree::new(), LiveProbe::new());
        let inventory = Inventory::read(&tree, &probe).map_err(|error| no(error.to_string()))?;
        let mut notes = Vec::new();
        let (names, scope, process) = match self {
            Self::All => (all(&inventory), Scope::All, None),
            Self::Process(process) => {
                let (names, untold) = of_process(*process, &inventory).map_err(no)?;
                if names.is_empty() && !untold.is_empty() {
                    return Err(no(untold.join("; ")));
                }
                notes.extend(untold);
                notes.extend(synchronous_files(*process));
                (names, Scope::Process(*process), Some(*process))
            }
            Self::Place(place) => {
                let (names, numbers) = of_place(place, &inventory).map_err(no)?;
                (names, Scope::Devices(numbers), None)
            }
        };
        let mut devices: Vec<WatchedDevice> = Vec::new();
        for name in names {
            let disk =
                inventory.get(&name).and_then(|block| block.partition.as_ref()).map(|of| of.disk.clone());
            if let Some(disk) = &disk {
                notes.push(format!("{name} is a partition of {disk}; all figures are for the whole disk."));
            }
            let name = disk.unwrap_or(name);
            if devices.iter().all(|known| known.name != name) {
                // Only an existing device has a number.
                let number = device_number(&name).map(|number| WatchedDevice {
                    has_requests: Path::new("/sys/class/block").join(&name).join("mq").is_dir(),
                    number,
                    name,
                });
                devices.extend(number);
            }
        }
        if devices.is_empty() {
            let reason = "it is on no block device of this machine: name a path on a disk, a device such as \
                          /dev/sda, or use --all";
            return Err(no(reason.to_owned()));
        }
        Ok(Target { shown, devices, scope, process, notes })
    }
}

/// Returns every device that holds data and is not a part of another one.
fn all(inventory: &Inventory) -> Vec<String> {
    let holds = |block: &&plumb_linux::inventory::Block| {
        !matches!(block.kind, BlockKind::Partition | BlockKind::Removable)
            && !block.hidden
            && block.sectors.is_some_and(|sectors| sectors > 0)
    };
    inventory.blocks().filter(holds).map(|block| block.name.clone()).collect()
}

/// Returns the devices below a path or a block device, and the numbers of the file systems and devices on
/// them.
fn of_place(place: &str, inventory: &Inventory) -> Result<(Vec<String>, BTreeSet<u64>), String> {
    let found = fs::metadata(place).ok();
    let block = match &found {
        Some(found) if found.file_type().is_block_device() => {
            inventory.by_number(DeviceNumber::from_stat(found.rdev()))
        }
        Some(_) => None,
        // The name is the kernel name of a device.
        None => inventory.get(place),
    };
    if let Some(block) = block {
        return Ok((vec![block.name.clone()], numbers_on(&block.name, inventory)));
    }
    let path = survey_path(&LiveTree::new(), &LiveProbe::new(), place).map_err(|error| error.to_string())?;
    let names = path.first_devices().into_iter().chain(path.block_devices()).collect();
    Ok((names, found.iter().map(MetadataExt::dev).collect()))
}

/// Returns the numbers that stat(2) shows for files and devices on a device: the device, the devices above
/// it, and the file systems there.
fn numbers_on(name: &str, inventory: &Inventory) -> BTreeSet<u64> {
    let blocks = inventory.get(name).into_iter().chain(inventory.above(name));
    let mut numbers = BTreeSet::new();
    for block in blocks {
        numbers.insert(block.number.to_stat());
        let points = block.mounts.iter().filter(|(point, _)| !point.is_empty());
        numbers.extend(points.filter_map(|(point, _)| Some(fs::metadata(point).ok()?.dev())));
    }
    numbers
}

/// Returns the devices below the open files of a process and its working directory, and the places whose
/// devices could not be found, with the reason.
fn of_process(process: u32, inventory: &Inventory) -> Result<(Vec<String>, Vec<String>), String> {
    let place = |name: &str| format!("/proc/{process}/{name}");
    let entries = fs::read_dir(place("fd")).map_err(|error| {
        format!("{}: {error}; name a process that runs, as its user or as root", place("fd"))
    })?;
    let links = entries.flatten().map(|entry| entry.path()).chain([place("cwd").into()]);
    let (mut names, mut seen, mut untold) = (Vec::new(), BTreeSet::new(), BTreeMap::new());
    let mut tried = 0;
    for link in links {
        let Ok(found) = fs::metadata(&link) else { continue };
        let kind = found.file_type();
        let number = if kind.is_block_device() { found.rdev() } else { found.dev() };
        let is_stored = kind.is_file() || kind.is_dir() || kind.is_block_device();
        if !is_stored || seen.contains(&number) || tried >= PLACES_MAX {
            continue;
        }
        tried += 1;
        // Another place on the same device may be accessible.
        match of_place(&link.to_string_lossy(), inventory) {
            Ok((more, _)) => {
                seen.insert(number);
                names.extend(more);
            }
            Err(why) => {
                untold.entry(number).or_insert(why);
            }
        }
    }
    untold.retain(|number, _| !seen.contains(number));
    let untold =
        untold.into_values().map(|why| format!("The devices beneath one of its files are not known: {why}."));
    Ok((names, untold.collect()))
}

/// Returns a description of the files of a process that are flushed at each write without a sync call; `None`
/// if there are none.
fn synchronous_files(process: u32) -> Option<String> {
    let directory = format!("/proc/{process}/fd");
    let names = fs::read_dir(&directory).ok()?.flatten();
    let names: Vec<String> = names.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    let is_stored = |link: &str| {
        fs::metadata(link).is_ok_and(|found| found.is_file() || found.file_type().is_block_device())
    };
    let is_synchronous = |name: &&String| {
        let link = format!("{directory}/{name}");
        let info = fs::read_to_string(format!("/proc/{process}/fdinfo/{name}")).unwrap_or_default();
        let has_attribute =
            || LiveTree::new().attributes(&link).is_ok_and(|attributes| attributes.synchronous);
        is_stored(&link) && (is_opened_synchronous(&info) || has_attribute())
    };
    let count = names.iter().filter(is_synchronous).count();
    (count > 0).then(|| {
        format!(
            "{count} of its open files are opened with O_SYNC or O_DSYNC, or have the attribute S (chattr +S): each write to them is \
             flushed, and no sync call shows it."
        )
    })
}

/// Returns true if the flags of a descriptor have O_DSYNC, which O_SYNC includes: `/proc/PID/fdinfo/N`, in
/// octal (proc(5)).
fn is_opened_synchronous(info: &str) -> bool {
    let flags = field::<String>(info, "flags:").and_then(|flags| u32::from_str_radix(&flags, 8).ok());
    flags.is_some_and(|flags| flags & rustix::fs::OFlags::DSYNC.bits() != 0)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::OpenOptionsExt as _;

    use rustix::fs::OFlags;

    use super::*;

    #[test]
    fn files_that_are_flushed_at_each_write_are_told() {
        let directory = tempfile::tempdir().unwrap();
        let open = |name: &str, flag: OFlags| {
            let mut options = fs::OpenOptions::new();
            options.write(true).create(true).custom_flags(flag.bits() as i32);
            options.open(directory.path().join(name)).unwrap()
        };
        let flags =
            [(OFlags::DSYNC, true), (OFlags::SYNC, true), (OFlags::DIRECT, false), (OFlags::APPEND, false)];
        for (number, (flag, expected)) in flags.into_iter().enumerate() {
            let file = open(&number.to_string(), flag);
            let info =
                fs::read_to_string(format!("/proc/self/fdinfo/{}", std::os::fd::AsRawFd::as_raw_fd(&file)));
            assert_eq!(is_opened_synchronous(&info.unwrap()), expected, "{flag:?}");
        }
        let _held = open("held", OFlags::DSYNC);
        let said = synchronous_files(std::process::id()).unwrap();
        assert!(said.contains("O_SYNC or O_DSYNC"), "{said}");
    }

    #[test]
    fn a_number_is_a_process_and_anything_else_a_place() {
        assert_eq!(RequestedTarget::parse("1234"), RequestedTarget::Process(1234));
        for place in ["./1234", "/dev/sda", "sda", "99999999999"] {
            assert_eq!(RequestedTarget::parse(place), RequestedTarget::Place(place.to_owned()));
        }
    }

    #[test]
    fn what_is_not_there_is_an_error_with_a_remedy() {
        let error = RequestedTarget::parse("/nowhere/at/all").find().unwrap_err().to_string();
        assert!(error.contains("/nowhere/at/all") && error.contains("name a"), "{error}");
        // No process has such a number (PID_MAX_LIMIT).
        let error = RequestedTarget::Process(4_194_305).find().unwrap_err().to_string();
        assert!(error.contains("4194305") && error.contains("name a process"), "{error}");
    }
}
