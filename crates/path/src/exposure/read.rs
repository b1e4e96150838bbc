//! Readings of the data that a power cut would lose.

use std::collections::BTreeMap;

use plumb_linux::open_files::{FileInterest, OpenFile, OpenFiles};
use plumb_linux::probe::{Probe, ProbedDevice, Request, wire::dm};
use plumb_linux::tree::{DeviceNumber, Tree};

use super::kernel::{self, Count};
use super::plan::{Drive, ExposurePlan, Journal, LoopFile, Memory, Reading, Source};
use super::settled::Progress;
use super::{ExposedPart, Exposure, Holder, Live, PartKind};

/// Size of a sector in the kernel's counters.
const SECTOR: u64 = 512;
/// Maximum number of attempts to read two counters consistently.
const TRIES_MAX: usize = 8;

/// Sources for a reading.
#[derive(Clone, Copy)]
pub(super) struct Machine<'a> {
    pub(super) tree: &'a dyn Tree,
    pub(super) probe: &'a dyn Probe,
    pub(super) live: &'a dyn Live,
}

impl ExposurePlan {
    /// Takes a single reading of the data that a power cut would lose now.
    pub fn now(&self, tree: &dyn Tree, probe: &dyn Probe, live: &dyn Live) -> Exposure {
        self.clone().read(Machine { tree, probe, live }, false)
    }

    /// Takes a reading of the data that a power cut would lose now. `is_watched` means that there were
    /// earlier readings.
    pub(super) fn read(&mut self, machine: Machine<'_>, is_watched: bool) -> Exposure {
        // The kernel's counts before and after the files are inspected: the larger bounds the data of the
        // files.
        let counts = self.counts(machine.tree);
        let files = machine.live.open_files(&self.wanted());
        let counts: Vec<Option<Count>> =
            counts.into_iter().zip(self.counts(machine.tree)).map(|(one, two)| larger(one, two)).collect();
        let mut exposure = Exposure::default();
        let mut reader = Reader { machine, is_watched, files: &files };
        for (source, count) in self.sources.iter_mut().zip(counts) {
            let part = reader.part(source, count, &mut exposure);
            exposure.parts.push(ExposedPart { layer: source.layer.clone(), ..part });
        }
        exposure.bytes_max = exposure.parts.iter().filter_map(|part| part.bytes_max).sum();
        exposure.bytes_min = exposure.parts.iter().map(|part| part.bytes_min).sum();
        exposure.complete = exposure.parts.iter().all(|part| part.bytes_max.is_some());
        exposure
    }

    /// Samples the counters that bound the unsettled data. More samples make the bounds tighter and are cheap
    /// compared with a reading.
    pub(super) fn sample(&mut self, tree: &dyn Tree) {
        for source in &mut self.sources {
            match &mut source.reading {
                Reading::Journal(journal) => {
                    if let Some(progress) = journal_progress(tree, journal) {
                        journal.settled.take(progress);
                    }
                }
                Reading::Drive(drive) => {
                    if let Ok(progress) = drive_progress(tree, &drive.name) {
                        drive.settled.take(progress);
                    }
                }
                _ => {}
            }
        }
    }

    fn counts(&self, tree: &dyn Tree) -> Vec<Option<Count>> {
        let count = |source: &Source| match &source.reading {
            Reading::Memory(memory) => kernel::count(tree, memory.counts.as_deref()),
            _ => None,
        };
        self.sources.iter().map(count).collect()
    }

    fn wanted(&self) -> FileInterest {
        let memories = || {
            self.sources.iter().filter_map(|source| match &source.reading {
                Reading::Memory(memory) => Some(memory),
                _ => None,
            })
        };
        FileInterest {
            file_systems: memories().filter_map(|memory| memory.file_system).collect(),
            devices: memories().filter_map(|memory| memory.device).collect(),
        }
    }
}

fn larger(one: Option<Count>, two: Option<Count>) -> Option<Count> {
    match (one, two) {
        (Some(one), Some(two)) => Some(if one.most > two.most { one } else { two }),
        (one, two) => one.or(two),
    }
}

/// Reader of a path, layer by layer.
struct Reader<'a> {
    machine: Machine<'a>,
    is_watched: bool,
    files: &'a OpenFiles,
}

fn known(kind: PartKind, bytes: u64, because: impl Into<String>) -> ExposedPart {
    ExposedPart { kind, bytes_max: Some(bytes), because: because.into(), ..ExposedPart::default() }
}

fn unknown(kind: PartKind, why: impl Into<String>, because: impl Into<String>) -> ExposedPart {
    ExposedPart {
        kind,
        bytes_max_unknown_because: Some(why.into()),
        because: because.into(),
        ..ExposedPart::default()
    }
}

impl Reader<'_> {
    fn part(&mut self, source: &mut Source, count: Option<Count>, exposure: &mut Exposure) -> ExposedPart {
        let tree = self.machine.tree;
        match &mut source.reading {
            Reading::Memory(memory) => self.memory(memory, count, exposure),
            Reading::Journal(journal) => self.journal(journal),
            Reading::LoopFile(file) => self.loop_file(file.as_ref()),
            Reading::Files { point } => match self.machine.live.used(point) {
                Some(bytes) => known(PartKind::Contents, bytes, "its files are in memory and nowhere else"),
                None => unknown(PartKind::Contents, format!("{point} cannot be looked at"), "statvfs(3)"),
            },
            Reading::Disk { bytes: Some(bytes) } => {
                known(PartKind::Contents, *bytes, "the whole device is memory; this is its size")
            }
            Reading::Disk { bytes: None } => {
                unknown(PartKind::Contents, "its size cannot be read", "the whole device is memory")
            }
            Reading::SimulatedDrive { name } => match self.machine.live.drive(name) {
                Ok(bytes) => ExposedPart {
                    bytes_min: bytes,
                    ..known(PartKind::Drive, bytes, format!("`plumb drive status {name}`"))
                },
                Err(why) => unknown(PartKind::Drive, why, "its server did not say"),
            },
            Reading::PlumbCache { name } => self.plumb_cache(name),
            Reading::Bcache { directory } => bcache(tree, directory),
            Reading::DeviceMapper { name, number } => self.device_mapper(name, *number),
            Reading::Drive(drive) => self.drive(drive),
            Reading::Nothing { because } => known(PartKind::Drive, 0, *because),
            Reading::Unknown { because } => unknown(PartKind::Drive, because.clone(), "nothing says"),
        }
    }

    /// Measures the page cache: at least the data of the open files, at most the kernel's count.
    fn memory(&self, memory: &Memory, count: Option<Count>, exposure: &mut Exposure) -> ExposedPart {
        let files = || self.files.files.iter();
        let held: u64 = files().map(|file| file.unwritten.0).sum();
        let of_others = files().filter(|file| writers(file).next().is_some());
        let attributed: u64 = of_others.map(|file| file.unwritten.0).sum();
        self.holders(memory, exposure);
        let kind = PartKind::Memory;
        let Some(Count { least, most, source }) = count else {
            let why = "neither /proc/meminfo nor the counts of debugfs can be read";
            exposure.unheld_bytes_max_unknown_because = Some(why.to_owned());
            return ExposedPart { bytes_min: held, ..unknown(kind, why, "cachestat of open files") };
        };
        let bytes_max = held.max(most);
        exposure.unheld_bytes_max = Some(bytes_max - attributed);
        ExposedPart {
            bytes_min: held.max(least),
            age_min_unknown_because: (bytes_max > 0).then(|| ages(self.machine.tree)),
            ..known(kind, bytes_max, format!("dirty and writeback pages by {source}"))
        }
    }

    /// Adds the processes that would lose data in memory, and the reason why some may be missing.
    fn holders(&self, memory: &Memory, exposure: &mut Exposure) {
        let OpenFiles { files, denied, uncounted, is_unsupported } = self.files;
        let is_looked_at = memory.file_system.is_some() || memory.device.is_some();
        exposure.holders_unknown_because = if !is_looked_at {
            Some(
                "files of a server's file system are not looked at, since that could wait for the server"
                    .to_owned(),
            )
        } else if *is_unsupported {
            Some("the kernel counts the pages of a file (cachestat) since Linux 6.5 only".to_owned())
        } else if *denied > 0 {
            Some(format!("{denied} processes may not be looked into by this user: run as root"))
        } else {
            (*uncounted > 0).then(|| format!("{uncounted} open files could not be counted"))
        };
        exposure.holders = holders(files);
    }

    fn journal(&self, journal: &mut Journal) -> ExposedPart {
        let Journal { file_system, commit, .. } = &*journal;
        let interval = match commit {
            Some(seconds) => format!("{file_system} commits at most {seconds} s after a change"),
            None => format!("when {file_system} commits is not known"),
        };
        let because = format!(
            "{interval}: until then names and sizes are in memory, and a cut takes with them data that was written back since"
        );
        let Some(progress) = journal_progress(self.machine.tree, journal) else {
            return unknown(PartKind::Journal, "the kernel does not show when it last committed", because);
        };
        match journal.settled.take(progress) {
            Some(bytes) => known(PartKind::Journal, bytes, because),
            None => unknown(PartKind::Journal, self.not_yet("commits of the journal"), because),
        }
    }

    fn drive(&self, drive: &mut Drive) -> ExposedPart {
        let because = "its cache is volatile: what was written since its last flush began";
        let progress = match drive_progress(self.machine.tree, &drive.name) {
            Ok(progress) => progress,
            Err(why) => return unknown(PartKind::Drive, why, because),
        };
        match drive.settled.take(progress) {
            Some(bytes) => known(PartKind::Drive, bytes, because),
            None => unknown(PartKind::Drive, self.not_yet("flushes"), because),
        }
    }

    fn not_yet(&self, what: &str) -> String {
        match self.is_watched {
            true => format!("too few {what} were seen yet"),
            false => format!("it takes several {what} to know: `plumb observe --exposure`"),
        }
    }

    fn loop_file(&self, file: Option<&LoopFile>) -> ExposedPart {
        let kind = PartKind::LoopFile;
        let because = "cachestat of the file behind it";
        let Some(file) = file else {
            return known(
                kind,
                0,
                "its file is a device, or a file that no page cache holds back: see below",
            );
        };
        match self.machine.live.file(&file.path) {
            Ok(found) if file.identity.is_some_and(|known| known != (found.device, found.inode)) => {
                unknown(kind, format!("{} leads to another file now", file.path), because)
            }
            Ok(found) => match found.unwritten {
                Some(bytes) => ExposedPart { bytes_min: bytes.0, ..known(kind, bytes.0, because) },
                None => unknown(kind, "the kernel counts the pages of a file since Linux 6.5 only", because),
            },
            Err(why) => unknown(kind, why, because),
        }
    }

    fn plumb_cache(&self, name: &str) -> ExposedPart {
        let because =
            format!("`plumb cache status {name}`: what was acknowledged is in the log, on its devices");
        match self.machine.live.cache(name) {
            Ok(share) => ExposedPart {
                kept_bytes: Some(share.bytes),
                age_min: share.oldest,
                ..known(PartKind::Cache, 0, because)
            },
            Err(why) => unknown(PartKind::Cache, why, because),
        }
    }

    /// Reads the status of dm-cache and dm-writecache: Documentation/admin-guide/device-mapper.
    fn device_mapper(&self, name: &str, number: DeviceNumber) -> ExposedPart {
        let ask = |request| {
            let reply = self
                .machine
                .probe
                .ask(ProbedDevice { name, number }, request)
                .map_err(|refusal| refusal.to_string())?;
            dm::parse(&reply).into_iter().next().ok_or_else(|| format!("{name} has no table"))
        };
        let (table, status) =
            match ask(Request::DmTable).and_then(|table| Ok((table, ask(Request::DmStatus)?))) {
                Ok(both) => both,
                Err(why) => return unknown(PartKind::Cache, why, "the status of the target, for root"),
            };
        let words = |text: &str| text.split_ascii_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let (table_words, status_words) = (words(&table.parameters), words(&status.parameters));
        let figure = |words: &[String], at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok());
        if status.kind == "cache" {
            let kept = figure(&status_words, 10)
                .zip(figure(&status_words, 2))
                .map(|(blocks, size)| blocks * size * SECTOR);
            let because = "dirty blocks by its status: they are on the cache device";
            return ExposedPart { kept_bytes: kept, ..known(PartKind::Cache, 0, because) };
        }
        let used = figure(&status_words, 1)
            .zip(figure(&status_words, 2))
            .map(|(all, free)| all.saturating_sub(free));
        let size = figure(&table_words, 3);
        let is_pmem = table_words.first().is_some_and(|word| word == "p");
        match used.zip(size).map(|(used, size)| used * size) {
            Some(bytes) if is_pmem => ExposedPart {
                kept_bytes: Some(bytes),
                ..known(PartKind::Cache, 0, "blocks in use by its status: they are in persistent memory")
            },
            Some(bytes) => {
                let because =
                    "blocks in use by its status: those that no flush or autocommit has covered are lost";
                known(PartKind::Cache, bytes, because)
            }
            None => unknown(PartKind::Cache, "its status cannot be read", "the status of the target"),
        }
    }
}

/// Counters of a block device: Documentation/block/stat.rst.
struct Counters {
    written: u64,
    flushes: Option<u64>,
}

fn counters(tree: &dyn Tree, device: &str) -> Option<Counters> {
    let text = tree.text(&format!("/sys/class/block/{device}/stat")).ok()?;
    let fields: Vec<u64> = text.split_ascii_whitespace().map_while(|field| field.parse().ok()).collect();
    Some(Counters { written: fields.get(6)? * SECTOR, flushes: fields.get(15).copied() })
}

/// Reads the progress of a file system's devices and its journal; `None` if the kernel does not show it. No
/// commit completes between the two counters, so they are consistent.
fn journal_progress(tree: &dyn Tree, journal: &Journal) -> Option<Progress> {
    let file = journal.commits.as_ref()?;
    let commits = || tree.text(file).ok()?.split_whitespace().next()?.parse().ok();
    let written =
        || journal.devices.iter().map(|device| Some(counters(tree, device)?.written)).sum::<Option<u64>>();
    let mut completed: u64 = commits()?;
    for _ in 0..TRIES_MAX {
        let written = written()?;
        let after = commits()?;
        if after == completed {
            return Some(Progress { written, completed });
        }
        completed = after;
    }
    None
}

/// Reads the progress of a drive.
///
/// # Errors
/// The reason, for display.
fn drive_progress(tree: &dyn Tree, name: &str) -> Result<Progress, &'static str> {
    let Counters { written, flushes } = counters(tree, name).ok_or("its counters cannot be read")?;
    let completed = flushes.ok_or("the kernel counts flushes since Linux 5.5 only")?;
    Ok(Progress { written, completed })
}

/// Reads the dirty data of bcache, which is printed in human-readable form: `1.5M` (bch_hprint of
/// drivers/md/bcache/util.c).
fn bcache(tree: &dyn Tree, directory: &str) -> ExposedPart {
    let because = format!("{directory}/dirty_data: it is on the caching disk");
    let text = tree.text(&format!("{directory}/dirty_data")).unwrap_or_default();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" => Some(1.0),
        "k" => Some(1024.0),
        "M" => Some(1024.0 * 1024.0),
        "G" => Some(1024.0 * 1024.0 * 1024.0),
        "T" => Some(1024.0 * 1024.0 * 1024.0 * 1024.0),
        _ => None,
    };
    let kept = digits.parse::<f64>().ok().zip(unit).map(|(value, unit)| (value * unit) as u64);
    ExposedPart { kept_bytes: kept, ..known(PartKind::Cache, 0, because) }
}

/// Returns the reason why one reading does not give the age of dirty pages.
fn ages(tree: &dyn Tree) -> String {
    let setting = |name: &str| {
        let text = tree.text(&format!("/proc/sys/vm/{name}")).ok()?;
        Some(text.parse::<f64>().ok()? / 100.0)
    };
    match (setting("dirty_expire_centisecs"), setting("dirty_writeback_centisecs")) {
        (Some(expire), Some(wakeup)) => format!(
            "one reading shows no age; the kernel begins to write a page back when it has been dirty for {expire} s, and looks every {wakeup} s: that is when it begins, not a bound"
        ),
        _ => "one reading shows no age".to_owned(),
    }
}

/// Returns the processes that write a file, except this one, which records its own readings and does not
/// interest the user.
fn writers(file: &OpenFile) -> impl Iterator<Item = (&u32, &String)> {
    let own = std::process::id();
    file.writers.iter().filter(move |(pid, _)| **pid != own)
}

/// Returns the processes that have files with unwritten data open, those with most data first.
fn holders(files: &[OpenFile]) -> Vec<Holder> {
    let mut by_process: BTreeMap<u32, (Holder, u64)> = BTreeMap::new();
    for file in files.iter().filter(|file| file.unwritten.0 > 0) {
        let is_shared = file.writers.len() > 1;
        for (pid, name) in writers(file) {
            let new = Holder { process: name.clone(), pid: *pid, ..Holder::default() };
            let (holder, most) = by_process.entry(*pid).or_insert((new, 0));
            holder.bytes += file.unwritten.0;
            if is_shared {
                holder.shared_bytes += file.unwritten.0;
            }
            if file.unwritten.0 > *most {
                (*most, holder.file) = (file.unwritten.0, file.path.clone());
            }
        }
    }
    let mut holders: Vec<Holder> = by_process.into_values().map(|(holder, _)| holder).collect();
    holders.sort_by_key(|holder| std::cmp::Reverse(holder.bytes));
    holders
}
