//! Factors by name: what each level of one changes in the words of a load, or on the machine.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use plumb_block::Bytes;
use plumb_cache::Mode;
use plumb_compare::Level;
use plumb_compare::setting::{
    Anew, CacheLevel, CacheSetting, CacheWanted, PolicySetting, SchedulerSetting, Setting,
};
use plumb_dialect::native::Words;
use plumb_path::WritePath;
use plumb_policy::state::State;
use plumb_targets::{Name, Permission};
use plumb_workload::Scenario;

use super::arguments::CompareArguments;
use super::file_system::{FileSystemSetting, mount_point};
use super::machine;
use super::workload::Workload;
use crate::arguments::running::OwnArguments;
use crate::command::load::meaning;
use crate::command::profile;
use crate::exit::{Exit, Refusal, refuse_if, usage};
use crate::setting_machine;

/// Setting of the levels on the machine; none if they are words and names only.
type MaybeSetting = anyhow::Result<Option<Box<dyn Setting>>>;

/// A factor with its levels.
#[derive(Debug, Clone)]
pub(crate) struct Factor {
    kind: &'static Kind,
    levels: Vec<String>,
}

/// Kind of a factor: what it changes, and how.
#[derive(Debug)]
struct Kind {
    name: &'static str,
    /// The levels that it has; of one without, they are names that are looked up later.
    known: &'static [&'static str],
    /// The words of a level, over those that all have.
    words: fn(&str) -> String,
    /// Name of a target at the level of this number.
    target: fn(&Place<'_>, usize, &str) -> Result<String, Refusal>,
    /// Setting of the levels on the machine.
    setting: fn(&Place<'_>) -> MaybeSetting,
    /// Part of a machine that has to be set.
    sets: Sets,
    /// True if the words say how a target is opened, and nothing else.
    opens: bool,
}

/// Part of a machine that has to be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sets {
    Nothing,
    /// The disks beneath the targets.
    Disks,
    /// A place that is typed beside the targets.
    Place,
}

/// Where the levels of a factor come about.
struct Place<'a> {
    levels: &'a [String],
    targets: &'a [String],
    /// Arguments that were typed beside the workload; nothing on the hosts of a fleet.
    typed: Option<&'a CompareArguments>,
    /// True if the target is the directory of a profile that works on files.
    is_directory: bool,
}

const KINDS: [Kind; 6] = [
    Kind { name: "buffering", known: &["cached", "direct", "dsync"], words: opened, opens: true, ..PLAIN },
    Kind { name: "drive", words: |model| format!("sim:{model}"), ..PLAIN },
    Kind {
        name: "policy",
        known: &["off", "on", "protected"],
        target: drive_at,
        setting: policy,
        sets: Sets::Disks,
        ..PLAIN
    },
    Kind { name: "cache", target: behind_cache, setting: cache, sets: Sets::Place, ..PLAIN },
    Kind { name: "scheduler", setting: scheduler, sets: Sets::Disks, ..PLAIN },
    Kind {
        name: "fs",
        known: &["ext4", "xfs", "btrfs"],
        target: on_file_system,
        setting: file_system,
        sets: Sets::Place,
        ..PLAIN
    },
];

/// Kind of a factor that changes nothing.
const PLAIN: Kind = Kind {
    name: "",
    known: &[],
    words: |_| String::new(),
    target: |_, _, target| Ok(target.to_owned()),
    setting: |_| Ok(None),
    sets: Sets::Nothing,
    opens: false,
};

/// The size of the file systems of `fs=`, unless another is typed.
const FS_SIZE: Bytes = Bytes(1 << 30);
/// The log of a cache before a simulated drive, unless another one is named.
const SIMULATED_LOG: &str = "sim:plp-nvme-ssd";

impl FromStr for Factor {
    type Err = String;

    fn from_str(typed: &str) -> Result<Self, String> {
        let expected = "expected buffering=cached,direct,dsync, drive=MODEL,MODEL, policy=off,on,protected, cache=none,wb:SIZE, \
                        scheduler=NAME,NAME or fs=ext4,xfs,btrfs";
        let (name, levels) = typed.split_once('=').ok_or(expected)?;
        let kind = KINDS.iter().find(|kind| kind.name == name).ok_or(expected)?;
        let levels: Vec<String> = levels.split(',').map(|level| level.trim().to_owned()).collect();
        let is_known = |level: &&String| kind.known.is_empty() || kind.known.contains(&level.as_str());
        if let Some(other) = levels.iter().find(|level| !is_known(level)) {
            return Err(format!("`{other}` is not a level of {name}: expected {}", kind.known.join(", ")));
        }
        if levels.len() < 2 || levels.iter().any(String::is_empty) {
            return Err(format!("`{typed}` is not a list of levels: give two or more, separated by commas"));
        }
        if name == "cache" {
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
    pub(super) const fn name(&self) -> &'static str {
        self.kind.name
    }

    /// Returns what is run at each level, and the targets before a level names them otherwise.
    ///
    /// # Errors
    /// If the factor is none of such targets.
    pub(super) fn levels(
        &self,
        typed: &CompareArguments,
        workload: &Workload,
    ) -> Result<(Vec<Level>, Vec<String>), Refusal> {
        // A file of words says more than its targets.
        let targets = workload.words.targets();
        let target = targets.iter().find(|target| !target.ends_with(".toml"));
        if let ("drive", Some(target)) = (self.name(), target) {
            let problem =
                format!("drive=: the levels are the targets, so {target} would not be used: leave it out");
            return Err(Refusal::new(Exit::Usage, problem));
        }
        let mut levels = Vec::new();
        let mut asked = Vec::new();
        for (number, level) in self.levels.iter().enumerate() {
            let words = Words::of_line(&(self.kind.words)(level)).map_err(usage)?;
            let mut scenario = match (&workload.profile, self.kind.opens) {
                (Some(profile), true) => reopened(profile, &workload.words, &words)?,
                _ => workload.scenario(&words)?,
            };
            let targets = scenario.targets();
            let place = Place {
                levels: &self.levels,
                targets: &targets,
                typed: Some(typed),
                is_directory: is_of_files(&scenario),
            };
            let renamed = |target: &str| (self.kind.target)(&place, number, target);
            let jobs = scenario.spans.iter_mut().flat_map(|span| &mut span.jobs);
            for target in jobs.flat_map(|job| &mut job.targets) {
                target.name = renamed(&target.name)?;
            }
            let again = self.levels[..number].iter().filter(|earlier| *earlier == level).count();
            let name = if again == 0 { level.clone() } else { format!("{level} ({})", again + 1) };
            let is_cached = self.kind.opens && level == "cached";
            if let Some(target) = targets.iter().find(|target| is_cached && !has_page_cache(target)) {
                let problem = format!(
                    "buffering=: {target} is used without a page cache, so cached and direct are the same there: compare direct,dsync, or name \
                     a file"
                );
                return Err(Refusal::new(Exit::Usage, problem));
            }
            levels.push(Level { name, scenario });
            asked = targets;
        }
        Ok((levels, asked))
    }

    /// Returns the setting of the levels on the machine, if that is how they come about.
    ///
    /// # Errors
    /// If the machine has no such level, or the user may not set it.
    pub(super) fn setting(&self, typed: &CompareArguments, targets: &[String]) -> MaybeSetting {
        let place = Place { levels: &self.levels, targets, typed: Some(typed), is_directory: false };
        (self.kind.setting)(&place)
    }

    /// Returns the setting of a policy or a scheduler on the disks beneath `targets`.
    ///
    /// # Errors
    /// If there are no such disks, or the user may not change them.
    pub(crate) fn setting_of_disks(&self, targets: &[String]) -> anyhow::Result<Box<dyn Setting>> {
        let place = Place { levels: &self.levels, targets, typed: None, is_directory: false };
        let setting = (self.kind.setting)(&place)?;
        Ok(setting.unwrap_or_else(|| Box::new(Anew)))
    }

    /// Returns the factor as typed, if its levels are set on the machine of the targets; none if they are
    /// words of the load.
    ///
    /// # Errors
    /// If it takes more of a machine than its targets say.
    pub(super) fn of_hosts(&self, targets: &[String]) -> Result<Option<String>, Refusal> {
        let name = self.name();
        match self.kind.sets {
            Sets::Disks if name != "policy" || !are_simulated(targets) => {
                Ok(Some(format!("{name}={}", self.levels.join(","))))
            }
            Sets::Nothing | Sets::Disks => Ok(None),
            Sets::Place => {
                let problem = format!(
                    "{name}= needs a place on each machine: run `plumb compare` on each host separately"
                );
                Err(Refusal::new(Exit::Usage, problem))
            }
        }
    }
}

/// Returns whether a profile works on files.
fn is_of_files(scenario: &Scenario) -> bool {
    scenario.spans.iter().flat_map(|span| &span.jobs).any(|job| job.program.is_some())
}

/// Returns a profile whose target is opened as `level` says, if it is not the application that opens it.
fn reopened(profile: &str, words: &Words, level: &Words) -> Result<Scenario, Refusal> {
    let mut scenario = profile::scenario(profile, words)?;
    let problem =
        format!("buffering=: profile {profile} works on files, and opens them as the application does");
    refuse_if!(is_of_files(&scenario), Usage, problem);
    let targets = Words::of_arguments(words.targets()).map_err(usage)?;
    let opened = meaning(&level.within(&targets))?.scenario;
    let opened = opened.spans.iter().flat_map(|span| &span.jobs).next();
    for job in scenario.spans.iter_mut().flat_map(|span| &mut span.jobs) {
        if let Some(opened) = opened {
            job.opening.caching = opened.opening.caching;
            let durable = opened.workload.durability.fua_every;
            job.workload.durability.fua_every = durable.or(job.workload.durability.fua_every);
        }
    }
    Ok(scenario)
}

/// Returns the words that open targets as a level of `buffering` says.
fn opened(level: &str) -> String {
    match level {
        "cached" => "--cached",
        "dsync" => "--direct --dsync",
        _ => "--direct",
    }
    .to_owned()
}

/// Returns a simulated drive with its write cache as the level says; any other target is as it was, and the
/// disk beneath it is set.
fn drive_at(place: &Place<'_>, number: usize, target: &str) -> Result<String, Refusal> {
    let options = match place.levels[number].as_str() {
        _ if !are_simulated(place.targets) => return Ok(target.to_owned()),
        "off" => "wce=off",
        "on" => "wce=on",
        // The cache is on, and the driver keeps flushes from the drive.
        _ => "wce=on&behaviour.driver_drops_flush=true",
    };
    Ok(with_option(target, options))
}

fn policy(place: &Place<'_>) -> MaybeSetting {
    if are_simulated(place.targets) {
        return Ok(None);
    }
    let paths = machine::paths(place.targets)?;
    machine::need_root("change the write cache of a disk")?;
    let disks = machine::of_all(&paths, WritePath::block_devices);
    let problem =
        "policy=: no disk of this machine is known beneath the targets; `plumb survey` shows what is";
    refuse_if!(disks.is_empty(), Usage, problem);
    let levels = place.levels.iter().map(|level| level.parse::<State>());
    let levels = levels.collect::<Result<_, _>>().map_err(usage)?;
    Ok(Some(Box::new(PolicySetting::new(setting_machine::this()?, disks, levels))))
}

fn scheduler(place: &Place<'_>) -> MaybeSetting {
    let paths = machine::paths(place.targets)?;
    machine::need_root("set the I/O scheduler of a disk")?;
    let ways =
        [WritePath::first_devices, WritePath::block_devices].map(|names| machine::of_all(&paths, names));
    let setting = SchedulerSetting::new(setting_machine::this()?, &ways, place.levels.to_vec());
    Ok(Some(Box::new(setting.map_err(Refusal::from)?)))
}

/// Returns the target itself, or behind a cache.
fn behind_cache(place: &Place<'_>, number: usize, _target: &str) -> Result<String, Refusal> {
    let target = only(place.targets)?;
    let problem = format!("cache=: {target} is a directory: a cache is put before a file or a block device");
    refuse_if!(place.is_directory, Usage, problem);
    let level = place.levels[number].parse().map_err(|problem| Refusal::new(Exit::Usage, problem))?;
    Ok(match level {
        CacheLevel::None => target.to_owned(),
        CacheLevel::Cache { mode, size } if are_simulated(place.targets) => {
            let log = place.typed.and_then(|typed| typed.cache_log.as_deref()).unwrap_or(SIMULATED_LOG);
            let has_size = log.contains("size=");
            let log = if has_size { log.to_owned() } else { with_option(log, &format!("size={}", size.0)) };
            let mode = if mode == Mode::WriteThrough { "write-through" } else { "write-back" };
            format!("cache:backing={target},log={log},size={},mode={mode}", size.0)
        }
        CacheLevel::Cache { .. } => cache_name(),
    })
}

fn cache(place: &Place<'_>) -> MaybeSetting {
    let Some(typed) = place.typed else { return Ok(None) };
    if are_simulated(place.targets) {
        return Ok((!typed.together).then(|| Box::new(Anew) as Box<dyn Setting>));
    }
    let levels = place.levels.iter().filter_map(|level| level.parse().ok()).collect();
    let backing = only(place.targets)?.to_owned();
    let problem =
        format!("cache=: {backing} has no place for a log beside it; name one with --cache-log PATH");
    refuse_if!(typed.cache_log.is_none() && backing.starts_with("/dev/"), Usage, problem);
    let log = typed.cache_log.clone().unwrap_or_else(|| format!("{backing}.plumb-log"));
    Ok(Some(cache_before(&backing, &log, &typed.own, levels)?))
}

/// Puts a cache before `backing` for the levels that have one.
///
/// # Errors
/// If there is no current directory, or the claims of this machine cannot be read.
pub(crate) fn cache_before(
    backing: &str,
    log: &str,
    own: &OwnArguments,
    levels: Vec<CacheLevel>,
) -> anyhow::Result<Box<dyn Setting>> {
    let (overwrite, destroy) = (own.overwrite, own.destroy.clone());
    let permission = Permission { overwrite, destroy, ..Permission::default() };
    let wanted = CacheWanted { backing: backing.to_owned(), log: std::path::absolute(log)?, permission };
    Ok(Box::new(CacheSetting::new(setting_machine::this()?, wanted, levels)))
}

/// Returns how a target is named behind such a cache.
pub(crate) fn cache_name() -> String {
    format!("cache:{}", CacheSetting::name())
}

/// Returns a file in the file system of the level.
fn on_file_system(place: &Place<'_>, number: usize, _target: &str) -> Result<String, Refusal> {
    let at = mount_point(&directory(place.targets)?, number, &place.levels[number]);
    Ok(if place.is_directory { at } else { at.join("data") }.display().to_string())
}

fn file_system(place: &Place<'_>) -> MaybeSetting {
    let Some(typed) = place.typed else { return Ok(None) };
    machine::need_root("mount a file system")?;
    let directory = directory(place.targets)?;
    let setting = FileSystemSetting::new(
        setting_machine::this()?,
        &directory,
        place.levels,
        typed.fs_size.unwrap_or(FS_SIZE),
    );
    Ok(Some(Box::new(setting.map_err(Refusal::from)?)))
}

/// Returns the directory that is the target of `fs=`.
fn directory(targets: &[String]) -> Result<PathBuf, Refusal> {
    let directory = only(targets)?;
    if Path::new(directory).is_dir() {
        return std::path::absolute(directory).map_err(usage);
    }
    let problem = format!("fs=: {directory} is not a directory: name one in which to make the file systems");
    Err(Refusal::new(Exit::Usage, problem))
}

fn only(targets: &[String]) -> Result<&str, Refusal> {
    match targets {
        [target] => Ok(target),
        _ => Err(Refusal::new(Exit::Usage, "name one target: this factor works on a single target")),
    }
}

/// Returns true if the kernel can keep its data in memory, as it does that of files and block devices.
fn has_page_cache(target: &str) -> bool {
    !matches!(Name::parse(target), Ok(Name::Scheme { .. }))
}

fn are_simulated(targets: &[String]) -> bool {
    targets.iter().all(|target| target.starts_with("sim:"))
}

fn with_option(drive: &str, option: &str) -> String {
    format!("{drive}{}{option}", if drive.contains('?') { '&' } else { '?' })
}
