//! Factors by name, with the effect of each level on the words of a load or on the machine.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use plumb_block::{Bytes, in_one_line};
use plumb_cache::Mode;
use plumb_dialect::native::Words;
use plumb_path::WritePath;
use plumb_policy::state::State;
use plumb_targets::{Name, Permission};
use plumb_trial::TrialError;
use plumb_workload::Scenario;

use crate::experiment::Level;
use crate::setting::{
    Anew, CacheLevel, CacheSetting, CacheWanted, FileSystemSetting, Machine, PolicySetting, SchedulerSetting,
    Setting, mount_point, need_root, of_all, paths,
};
use crate::workload::Workload;

/// Function that returns the machine on which levels are set, called only if there are such levels.
pub type FindMachine<'a> = dyn Fn() -> Result<Arc<Machine>, TrialError> + 'a;

/// A setting, or the reason why there is none.
type AnySetting = Result<Box<dyn Setting>, TrialError>;

/// A factor with its levels.
#[derive(Debug, Clone)]
pub struct Factor {
    kind: Kind,
    levels: Vec<String>,
}

/// Kind of a factor: the object that it changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Way in which a target is opened.
    Buffering,
    /// The simulated drive that is the target.
    Drive,
    /// The write cache of the disks beneath the targets.
    Policy,
    /// The write-back cache before the target.
    Cache,
    /// The I/O scheduler of the disks beneath the targets.
    Scheduler,
    /// The file system in the target, a directory.
    FileSystem,
}

/// Kinds in order, with their names and levels. If a kind has no levels here, they are names that are looked
/// up later.
const KINDS: [(Kind, &str, &[&str]); 6] = [
    (Kind::Buffering, "buffering", &["cached", "direct", "dsync"]),
    (Kind::Drive, "drive", &[]),
    (Kind::Policy, "policy", &["off", "on", "protected"]),
    (Kind::Cache, "cache", &[]),
    (Kind::Scheduler, "scheduler", &[]),
    (Kind::FileSystem, "fs", &["ext4", "xfs", "btrfs"]),
];

/// Options of the user for levels that are set on the machine.
pub struct SettingWanted<'a> {
    /// Permission to overwrite.
    pub permission: &'a Permission,
    /// File or block device for the log of a cache.
    pub cache_log: Option<&'a str>,
    /// Size of file systems.
    pub fs_size: Option<Bytes>,
    /// Choice to run all levels at the same time.
    pub together: bool,
    /// Machine on which levels are set.
    pub machine: &'a FindMachine<'a>,
}

/// Default size of the file systems of `fs=`.
const FS_SIZE: Bytes = Bytes(1 << 30);
/// Default log of a cache in front of a simulated drive.
const SIMULATED_LOG: &str = "sim:plp-nvme-ssd";

impl FromStr for Factor {
    type Err = String;

    fn from_str(typed: &str) -> Result<Self, String> {
        let expected = "expected buffering=cached,direct,dsync, drive=MODEL,MODEL, policy=off,on,protected, cache=none,wb:SIZE, \
                        scheduler=NAME,NAME or fs=ext4,xfs,btrfs";
        let (name, levels) = typed.split_once('=').ok_or(expected)?;
        let (kind, _, known) = KINDS.into_iter().find(|(_, known, _)| *known == name).ok_or(expected)?;
        let levels: Vec<String> = levels.split(',').map(|level| level.trim().to_owned()).collect();
        let is_known = |level: &&String| known.is_empty() || known.contains(&level.as_str());
        if let Some(other) = levels.iter().find(|level| !is_known(level)) {
            return Err(format!("`{other}` is not a level of {name}: expected {}", known.join(", ")));
        }
        if levels.len() < 2 || levels.iter().any(String::is_empty) {
            return Err(format!("`{typed}` is not a list of levels: give two or more, separated by commas"));
        }
        if kind == Kind::Cache {
            levels.iter().try_for_each(|level| level.parse::<CacheLevel>().map(drop))?;
            if levels[0] != "none" {
                return Err(
                    "the first level of cache must be none: the others are compared with the target alone"
                        .to_owned(),
                );
            }
        }
        Ok(Self { kind, levels })
    }
}

impl Factor {
    /// Returns the name of the factor.
    pub const fn name(&self) -> &'static str {
        KINDS[self.kind as usize].1
    }

    /// Returns the levels, and the targets before a level changes their names. `cache_log` is the log of a
    /// cache in front of simulated drives.
    ///
    /// # Errors
    /// If the factor does not apply to such targets.
    pub fn levels(
        &self,
        workload: &Workload<'_>,
        cache_log: Option<&str>,
    ) -> Result<(Vec<Level>, Vec<String>), TrialError> {
        // A name that ends in .toml is a file of words, not a target.
        let targets = workload.words.targets();
        let target = targets.iter().find(|target| !target.ends_with(".toml"));
        if let (Kind::Drive, Some(target)) = (self.kind, target) {
            return Err(TrialError::usage(format!(
                "drive=: the levels are the targets, so {target} would not be used: leave it out"
            )));
        }
        let mut levels = Vec::new();
        let mut asked = Vec::new();
        for (number, level) in self.levels.iter().enumerate() {
            let words = Words::of_line(&self.words(level)).map_err(usage)?;
            if let Some(word) = words.replaced_of(&workload.words) {
                return Err(self.replaces(&format!("--{word}")));
            }
            let mut scenario = match (&workload.profile, self.kind) {
                (Some(profile), Kind::Buffering) => reopened(profile, workload, &words)?,
                _ => workload.scenario(&words)?,
            };
            asked = scenario.targets();
            let is_directory = is_of_files(&scenario);
            for target in scenario.jobs_mut().flat_map(|job| &mut job.targets) {
                target.name = match self.kind {
                    Kind::Policy if are_simulated(&asked) => self.with_cache(&target.name, level)?,
                    Kind::Cache => behind_cache(&asked, is_directory, level, cache_log)?,
                    Kind::FileSystem => {
                        let at = mount_point(&directory(&asked)?, number, level);
                        if is_directory { at } else { at.join("data") }.display().to_string()
                    }
                    _ => continue,
                };
            }
            let again = self.levels[..number].iter().filter(|earlier| *earlier == level).count();
            let name = if again == 0 { level.clone() } else { format!("{level} ({})", again + 1) };
            let is_cached = self.kind == Kind::Buffering && level == "cached";
            if let Some(target) = asked.iter().find(|target| is_cached && !has_page_cache(target)) {
                return Err(TrialError::usage(format!(
                    "buffering=: {target} is used without a page cache, so cached and direct are the same there: compare direct,dsync, or name \
                     a file"
                )));
            }
            levels.push(Level { name, scenario });
        }
        Ok((levels, asked))
    }

    /// Returns the name of a simulated drive with the write cache of the level.
    fn with_cache(&self, drive: &str, level: &str) -> Result<String, TrialError> {
        let option = cache_option(level);
        match keys(option).find(|key| keys(drive).any(|typed| typed == *key)) {
            Some(key) => Err(self.replaces(&format!("{key}= of {drive}"))),
            None => Ok(with_option(drive, option)),
        }
    }

    /// Returns the refusal of an option that the levels set.
    fn replaces(&self, option: &str) -> TrialError {
        TrialError::usage(format!(
            "{}=: its levels replace {option}, which would do nothing: leave it out",
            self.name()
        ))
    }

    /// Returns the words that a level adds to the common ones.
    fn words(&self, level: &str) -> String {
        match (self.kind, level) {
            (Kind::Buffering, "cached") => "--cached".to_owned(),
            (Kind::Buffering, "dsync") => "--direct --dsync".to_owned(),
            (Kind::Buffering, _) => "--direct".to_owned(),
            (Kind::Drive, model) => format!("sim:{model}"),
            _ => String::new(),
        }
    }

    /// Returns the setting for levels that are set on the machine; `None` for other levels.
    ///
    /// # Errors
    /// If the machine has no such level, or the user may not set it.
    pub fn setting(
        &self,
        targets: &[String],
        wanted: &SettingWanted<'_>,
    ) -> Result<Option<Box<dyn Setting>>, TrialError> {
        let setting: Box<dyn Setting> = match self.kind {
            Kind::Buffering | Kind::Drive => return Ok(None),
            Kind::Policy if are_simulated(targets) => return Ok(None),
            Kind::Policy | Kind::Scheduler => self.setting_of_disks(targets, wanted.machine)?,
            Kind::Cache if are_simulated(targets) && wanted.together => return Ok(None),
            Kind::Cache if are_simulated(targets) => Box::new(Anew),
            Kind::Cache => {
                let backing = only(targets)?;
                let log = match wanted.cache_log {
                    None if backing.starts_with("/dev/") => {
                        return Err(TrialError::usage(format!(
                            "cache=: {backing} has no place for a log beside it; name one with --cache-log PATH"
                        )));
                    }
                    log => log.map_or_else(|| format!("{backing}.plumb-log"), str::to_owned),
                };
                let levels = self.levels.iter().filter_map(|level| level.parse().ok()).collect();
                let wanted_cache = CacheWanted::new(backing, &log, wanted.permission)?;
                Box::new(CacheSetting::new((wanted.machine)()?, wanted_cache, levels))
            }
            Kind::FileSystem => {
                need_root("mount a file system")?;
                let (directory, size) = (directory(targets)?, wanted.fs_size.unwrap_or(FS_SIZE));
                Box::new(FileSystemSetting::new((wanted.machine)()?, &directory, &self.levels, size)?)
            }
        };
        Ok(Some(setting))
    }

    /// Returns the setting of a policy or a scheduler on the disks beneath `targets`.
    ///
    /// # Errors
    /// If there are no such disks, or the user may not change them.
    pub fn setting_of_disks(&self, targets: &[String], machine: &FindMachine<'_>) -> AnySetting {
        let paths = |what| paths(targets).and_then(|paths| need_root(what).map(|()| paths));
        match self.kind {
            Kind::Policy => {
                let disks = of_all(&paths("change the write cache of a disk")?, WritePath::block_devices);
                if disks.is_empty() {
                    return Err(TrialError::usage(
                        "policy=: no disk of this machine is known beneath the targets; `plumb survey` shows what is",
                    ));
                }
                let levels = self.levels.iter().map(|level| level.parse::<State>());
                let levels = levels.collect::<Result<_, _>>().map_err(usage)?;
                Ok(Box::new(PolicySetting::new(machine()?, disks, levels)))
            }
            Kind::Scheduler => {
                let paths = paths("set the I/O scheduler of a disk")?;
                let ways = [WritePath::first_devices, WritePath::block_devices];
                let ways = ways.map(|names| of_all(&paths, names));
                Ok(Box::new(SchedulerSetting::new(machine()?, &ways, self.levels.clone())?))
            }
            _ => Ok(Box::new(Anew)),
        }
    }

    /// Returns the factor as typed if its levels are set on the machine of the targets; `None` if they are
    /// words of the load.
    ///
    /// # Errors
    /// If the factor requires more of a machine than its targets tell.
    pub fn of_hosts(&self, targets: &[String]) -> Result<Option<String>, TrialError> {
        let name = self.name();
        match self.kind {
            Kind::Policy if are_simulated(targets) => Ok(None),
            Kind::Policy | Kind::Scheduler => Ok(Some(format!("{name}={}", self.levels.join(",")))),
            Kind::Buffering | Kind::Drive => Ok(None),
            Kind::Cache | Kind::FileSystem => Err(TrialError::usage(format!(
                "{name}= needs a place on each machine: run `plumb compare` on each host separately"
            ))),
        }
    }
}

fn usage(error: impl std::error::Error + 'static) -> TrialError {
    TrialError::usage(in_one_line(&error))
}

/// Returns true if a profile works on files.
fn is_of_files(scenario: &Scenario) -> bool {
    scenario.jobs().any(|job| job.program.is_some())
}

/// Returns a profile whose target is opened as in `level`. Refuses an application, which opens its files
/// itself.
fn reopened(profile: &str, workload: &Workload<'_>, level: &Words) -> Result<Scenario, TrialError> {
    let mut scenario = workload.scenario(&Words::default())?;
    if is_of_files(&scenario) {
        return Err(TrialError::usage(format!(
            "buffering=: profile {profile} works on files, and opens them as the application does"
        )));
    }
    let targets = Words::of_arguments(workload.words.targets()).map_err(usage)?;
    let opened = (workload.read)(None, &level.within(&targets))?;
    let Some(opened) = opened.jobs().next() else { return Ok(scenario) };
    for job in scenario.jobs_mut() {
        job.opening.caching = opened.opening.caching;
        let durable = opened.workload.durability.fua_every;
        job.workload.durability.fua_every = durable.or(job.workload.durability.fua_every);
    }
    Ok(scenario)
}

/// Returns the options of a simulated drive for the write cache of a level of `policy`.
fn cache_option(level: &str) -> &'static str {
    match level {
        "off" => "wce=off",
        "on" => "wce=on",
        // The cache is on, and the driver keeps flushes from the drive.
        _ => "wce=on&behaviour.driver_drops_flush=true",
    }
}

/// Returns the target, alone or behind a cache.
fn behind_cache(
    targets: &[String],
    is_directory: bool,
    level: &str,
    log: Option<&str>,
) -> Result<String, TrialError> {
    let target = only(targets)?;
    if is_directory {
        return Err(TrialError::usage(format!(
            "cache=: {target} is a directory: a cache is put before a file or a block device"
        )));
    }
    Ok(match level.parse().map_err(TrialError::usage)? {
        CacheLevel::None => target.to_owned(),
        CacheLevel::Cache { mode, size } if are_simulated(targets) => {
            let log = log.unwrap_or(SIMULATED_LOG);
            let has_size = log.contains("size=");
            let log = if has_size { log.to_owned() } else { with_option(log, &format!("size={}", size.0)) };
            let mode = if mode == Mode::WriteThrough { "write-through" } else { "write-back" };
            format!("cache:backing={target},log={log},size={},mode={mode}", size.0)
        }
        CacheLevel::Cache { .. } => CacheSetting::target(),
    })
}

/// Returns the directory that is the target of `fs=`.
fn directory(targets: &[String]) -> Result<PathBuf, TrialError> {
    let directory = only(targets)?;
    if Path::new(directory).is_dir() {
        return std::path::absolute(directory).map_err(usage);
    }
    Err(TrialError::usage(format!(
        "fs=: {directory} is not a directory: name one in which to make the file systems"
    )))
}

fn only(targets: &[String]) -> Result<&str, TrialError> {
    match targets {
        [target] => Ok(target),
        _ => Err(TrialError::usage("name one target: this factor works on a single target")),
    }
}

/// Returns true if the page cache may hold data of the target, as for files and block devices.
fn has_page_cache(target: &str) -> bool {
    !matches!(Name::parse(target), Ok(Name::Scheme { .. }))
}

fn are_simulated(targets: &[String]) -> bool {
    targets.iter().all(|target| target.starts_with("sim:"))
}

/// Returns the names of the options of a simulated drive.
fn keys(options: &str) -> impl Iterator<Item = &str> {
    options.split(['?', '&']).filter_map(|option| Some(option.split_once('=')?.0))
}

/// Returns a simulated drive with one more option.
pub(crate) fn with_option(drive: &str, option: &str) -> String {
    format!("{drive}{}{option}", if drive.contains('?') { '&' } else { '?' })
}
