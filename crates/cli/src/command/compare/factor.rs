//! Factors by name: what each level of one changes in the words of a load, or on the machine.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use plumb_cache::Mode;
use plumb_compare::setting::{
    Anew, CacheLevel, CacheSetting, CacheWanted, PolicySetting, SchedulerSetting, Setting,
};
use plumb_dialect::native::Words;
use plumb_path::WritePath;
use plumb_policy::state::State;
use plumb_target::Permission;

use super::file_system::{FileSystemSetting, mount_point};
use super::{CompareArguments, machine};
use crate::exit::{Exit, Refusal, usage};

/// A factor with its levels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Factor {
    kind: Kind,
    levels: Vec<String>,
}

/// What a factor changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// How targets are opened.
    Buffering,
    /// Which simulated drive is the target.
    Drive,
    /// The write cache of drives, and whether flushes reach them.
    Policy,
    /// Whether a write-back cache of plumb's is before the target.
    Cache,
    /// The I/O scheduler of disks.
    Scheduler,
    /// Which file system a file is in.
    FileSystem,
}

/// Each factor by its name, with the levels that it has; of one without, they are names that are looked up later.
const KINDS: [(&str, Kind, &[&str]); 6] = [
    ("buffering", Kind::Buffering, &["cached", "direct", "dsync"]),
    ("drive", Kind::Drive, &[]),
    ("policy", Kind::Policy, &["off", "on", "protected"]),
    ("cache", Kind::Cache, &[]),
    ("scheduler", Kind::Scheduler, &[]),
    ("fs", Kind::FileSystem, &["ext4", "xfs", "btrfs"]),
];

/// The log of a cache before a simulated drive, unless another one is named.
const SIMULATED_LOG: &str = "sim:plp-nvme-ssd";

impl FromStr for Factor {
    type Err = String;

    fn from_str(typed: &str) -> Result<Self, String> {
        let expected = "expected buffering=cached,direct,dsync, drive=MODEL,MODEL, policy=off,on,protected, cache=none,wb:SIZE, \
                        scheduler=NAME,NAME or fs=ext4,xfs,btrfs";
        let (name, levels) = typed.split_once('=').ok_or(expected)?;
        let (_, kind, known) = KINDS.iter().find(|(known, ..)| *known == name).ok_or(expected)?;
        let levels: Vec<String> = levels.split(',').map(|level| level.trim().to_owned()).collect();
        if let Some(other) = levels.iter().find(|level| !known.is_empty() && !known.contains(&level.as_str()))
        {
            return Err(format!("`{other}` is no level of {name}: expected {}", known.join(", ")));
        }
        if levels.len() < 2 || levels.iter().any(String::is_empty) {
            return Err(format!("`{typed}` has no two levels: type them with a comma between"));
        }
        if *kind == Kind::Cache {
            levels.iter().try_for_each(|level| level.parse::<CacheLevel>().map(drop))?;
            if levels[0] != "none" {
                return Err(
                    "the first level of cache is none: the others are compared with the target alone"
                        .to_owned(),
                );
            }
        }
        Ok(Self { kind: *kind, levels })
    }
}

impl Factor {
    /// Its name.
    pub(super) fn name(&self) -> &'static str {
        KINDS.iter().find(|(_, kind, _)| *kind == self.kind).map_or("", |(name, ..)| name)
    }

    /// Each level with its words, over those that all have.
    ///
    /// # Errors
    /// If the factor is none of such targets.
    pub(super) fn levels(&self, typed: &CompareArguments) -> Result<Vec<(String, Words)>, Refusal> {
        let level = |(number, level): (usize, &String)| {
            let words = Words::of_arguments(self.arguments(number, typed)?).map_err(usage)?;
            let again = self.levels[..number].iter().filter(|earlier| *earlier == level).count();
            let name = if again == 0 { level.clone() } else { format!("{level} ({})", again + 1) };
            Ok((name, words.within(&typed.words)))
        };
        self.levels.iter().enumerate().map(level).collect()
    }

    /// The words of a level.
    fn arguments(&self, number: usize, typed: &CompareArguments) -> Result<Vec<String>, Refusal> {
        let targets = typed.words.targets();
        let words = |words: &str| words.split(' ').map(str::to_owned).collect();
        Ok(match (self.kind, self.levels[number].as_str()) {
            (Kind::Buffering, "cached") => words("--cached"),
            (Kind::Buffering, "dsync") => words("--direct --dsync"),
            (Kind::Buffering, _) => words("--direct"),
            (Kind::Drive, model) => vec![format!("sim:{model}")],
            (Kind::Policy, level) if are_simulated(&targets) => {
                targets.iter().map(|target| set(target, level)).collect()
            }
            (Kind::Policy | Kind::Scheduler, _) => targets,
            (Kind::Cache, level) => {
                let target = only(&targets)?;
                match level.parse().map_err(|problem| Refusal::new(Exit::Usage, problem))? {
                    CacheLevel::None => targets,
                    level @ CacheLevel::Cache { .. } if are_simulated(&targets) => {
                        vec![cached_drive(&target, level, typed.cache_log.as_deref())]
                    }
                    CacheLevel::Cache { .. } => vec![format!("cache:{}", CacheSetting::name())],
                }
            }
            (Kind::FileSystem, level) => {
                vec![mount_point(&directory(&targets)?, number, level).join("data").display().to_string()]
            }
        })
    }

    /// What sets the levels on the machine, if that is how they come about.
    ///
    /// # Errors
    /// If the machine has no such level, or the user may not set it.
    pub(super) fn setting(&self, typed: &CompareArguments) -> anyhow::Result<Option<Box<dyn Setting>>> {
        let targets = typed.words.targets();
        let root = |what| machine::need_root(what);
        Ok(Some(match self.kind {
            Kind::Buffering | Kind::Drive => return Ok(None),
            Kind::Policy if are_simulated(&targets) => return Ok(None),
            Kind::Cache if are_simulated(&targets) && typed.together => return Ok(None),
            Kind::Cache if are_simulated(&targets) => Box::new(Anew),
            Kind::Policy | Kind::Scheduler => return self.setting_of_disks(&targets).map(Some),
            Kind::Cache => {
                let levels = self.levels.iter().filter_map(|level| level.parse().ok()).collect();
                let backing = only(&targets)?;
                let log = typed.cache_log.clone().unwrap_or_else(|| format!("{backing}.plumb-log"));
                let permission = Permission {
                    overwrite: typed.own.overwrite,
                    destroy: typed.own.destroy.clone(),
                    ..Permission::default()
                };
                if typed.cache_log.is_none() && backing.starts_with("/dev/") {
                    let problem = format!(
                        "cache=: {backing} has no place for a log beside it; name one with --cache-log PATH"
                    );
                    return Err(Refusal::new(Exit::Usage, problem).into());
                }
                let log = std::path::absolute(PathBuf::from(log))?;
                Box::new(CacheSetting::new(
                    machine::this()?,
                    CacheWanted { backing, log, permission },
                    levels,
                ))
            }
            Kind::FileSystem => {
                root("mount a file system")?;
                let directory = directory(&targets)?;
                let setting =
                    FileSystemSetting::new(machine::this()?, &directory, &self.levels, typed.fs_size);
                Box::new(setting.map_err(super::refused)?)
            }
        }))
    }

    /// The factor as typed, if its levels are set on the machine of the targets; none if they are words of the load.
    ///
    /// # Errors
    /// If it takes more of a machine than its targets say.
    pub(super) fn of_hosts(&self, targets: &[String]) -> Result<Option<String>, Refusal> {
        match self.kind {
            Kind::Buffering | Kind::Drive => Ok(None),
            Kind::Policy if are_simulated(targets) => Ok(None),
            Kind::Policy | Kind::Scheduler => Ok(Some(format!("{}={}", self.name(), self.levels.join(",")))),
            Kind::Cache | Kind::FileSystem => {
                let name = self.name();
                let problem = format!(
                    "{name}= needs a place on each machine: run `plumb compare` on each host for itself"
                );
                Err(Refusal::new(Exit::Usage, problem))
            }
        }
    }

    /// What sets a policy or a scheduler on the disks beneath `targets`.
    ///
    /// # Errors
    /// If there are no such disks, or the user may not change them.
    pub(crate) fn setting_of_disks(&self, targets: &[String]) -> anyhow::Result<Box<dyn Setting>> {
        let paths = machine::paths(targets)?;
        if self.kind == Kind::Scheduler {
            machine::need_root("set the I/O scheduler of a disk")?;
            let ways = [WritePath::first_devices, WritePath::block_devices];
            let ways = ways.map(|names| machine::of_all(&paths, names));
            let setting = SchedulerSetting::new(machine::this()?, &ways, self.levels.clone());
            return Ok(Box::new(setting.map_err(super::refused)?));
        }
        machine::need_root("change the write cache of a disk")?;
        let disks = machine::of_all(&paths, WritePath::block_devices);
        if disks.is_empty() {
            let problem =
                "policy=: no disk of this machine is known beneath the targets; `plumb survey` shows what is";
            return Err(Refusal::new(Exit::Usage, problem).into());
        }
        let levels = self.levels.iter().map(|level| level.parse::<State>());
        let levels = levels.collect::<Result<_, _>>().map_err(usage)?;
        Ok(Box::new(PolicySetting::new(machine::this()?, disks, levels)))
    }
}

/// The directory that is the target of `fs=`.
fn directory(targets: &[String]) -> Result<PathBuf, Refusal> {
    let directory = if targets.is_empty() { ".".to_owned() } else { only(targets)? };
    if Path::new(&directory).is_dir() {
        return std::path::absolute(directory).map_err(usage);
    }
    let problem =
        format!("fs=: {directory} is no directory: name the one in which the file systems are to be made");
    Err(Refusal::new(Exit::Usage, problem))
}

fn only(targets: &[String]) -> Result<String, Refusal> {
    match targets {
        [target] => Ok(target.clone()),
        _ => Err(Refusal::new(Exit::Usage, "name one target: this factor is of one")),
    }
}

fn are_simulated(targets: &[String]) -> bool {
    targets.iter().all(|target| target.starts_with("sim:"))
}

/// A simulated drive with its write cache as `level` says.
fn set(target: &str, level: &str) -> String {
    let options = match level {
        "off" => "wce=off",
        "on" => "wce=on",
        // The cache is on, and the driver keeps flushes from the drive.
        _ => "wce=on&behaviour.driver_drops_flush=true",
    };
    with_option(target, options)
}

fn with_option(drive: &str, option: &str) -> String {
    format!("{drive}{}{option}", if drive.contains('?') { '&' } else { '?' })
}

/// A simulated drive behind a cache.
fn cached_drive(backing: &str, level: CacheLevel, log: Option<&str>) -> String {
    let CacheLevel::Cache { mode, size } = level else { return backing.to_owned() };
    let log = log.unwrap_or(SIMULATED_LOG);
    let log =
        if log.contains("size=") { log.to_owned() } else { with_option(log, &format!("size={}", size.0)) };
    let mode = if mode == Mode::WriteThrough { "write-through" } else { "write-back" };
    format!("cache:backing={backing},log={log},size={},mode={mode}", size.0)
}
