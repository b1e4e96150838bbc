//! Translation of a profile for Linux: a scenario, and notes for the user.
//!
//! | DiskSpd | here |
//! |---|---|
//! | `-Su`, `#N` | O_DIRECT |
//! | `-Sw`, `-Sh` | each write with RWF_DSYNC; on a mapping, msync after each |
//! | `-Sm` | a shared mapping |
//! | `-o1` | pread and pwrite, one after the other |
//! | threads of a target | one job, one seed for each job |
//! | `-F` | jobs with the same threads, one for targets that are treated alike; for each set of ThreadTargets |
//! | `-I1`, `-I2` | I/O class idle; best effort, lowest |

use plumb_block::{Bytes, Nanos};
use plumb_workload::{Affinity, Job, Scenario, Span, TargetUse, Warmup, Workload};

use super::drive::{opening, priority, workload};
use super::notes::Notes;
use super::profile::{Precreate, Profile, Target, TimeSpan};
use super::size::shown;
use crate::Meaning;
use crate::error::Error;
use crate::machine::Machine;
use crate::{native, processors};

/// Maximum number of threads, each counted for each of its targets.
const THREADS_MAX: u64 = 65_536;

impl Profile {
    /// Translates the profile for this machine. `size_of` returns the size of a file, `None` if missing or
    /// unknown.
    ///
    /// # Errors
    /// The unsupported option, and the reason.
    pub fn meaning(&self, machine: &Machine, size_of: SizeOf<'_>) -> Result<Meaning, Error> {
        let mut notes = Notes::default();
        notes.of_profile(self);
        let mut spans = Vec::new();
        let largest = self.largest_sizes();
        for span in &self.time_spans {
            check_number(span)?;
            notes.of_span(span);
            let sizes =
                Sizes { largest: &largest, precreated: self.precreate == Precreate::UseMaxSize, size_of };
            let jobs = jobs(span, &sizes, machine, &mut notes)?;
            let warmup = Warmup::For(Nanos::secs(u64::from(span.warmup)));
            let cooldown = Nanos::secs(u64::from(span.cooldown));
            spans.push(Span { warmup, cooldown, ..Span::new(jobs) });
        }
        let scenario = Scenario { spans };
        native::check(&scenario, "DiskSpd")?;
        Ok(Meaning { scenario, notes: notes.said })
    }

    /// Returns the largest size of each file in any span.
    fn largest_sizes(&self) -> Vec<(&str, u64)> {
        let mut sizes: Vec<(&str, u64)> = Vec::new();
        let targets = self.time_spans.iter().flat_map(|span| &span.targets);
        for target in targets {
            let Some(size) = target.file_size else { continue };
            match sizes.iter_mut().find(|(path, _)| *path == target.path) {
                Some((_, largest)) => *largest = size.max(*largest),
                None => sizes.push((&target.path, size)),
            }
        }
        sizes
    }
}

/// Lookup of the present size of a target; `None` if unknown.
pub type SizeOf<'a> = &'a dyn Fn(&str) -> Option<Bytes>;

/// Sizes of files, present and to be created.
struct Sizes<'a> {
    /// Largest size of each file in any span.
    largest: &'a [(&'a str, u64)],
    /// True if files are created with that size before the first span.
    precreated: bool,
    size_of: SizeOf<'a>,
}

impl Sizes<'_> {
    /// Returns the size of the file to create for `target`, and the end of its range if that is before the
    /// end of the file.
    fn for_target(&self, target: &Target, notes: &mut Notes) -> (Option<u64>, Option<u64>) {
        let largest = self.largest.iter().find(|(path, _)| *path == target.path).map(|(_, size)| *size);
        let made = if self.precreated { largest } else { target.file_size };
        let known = made.or_else(|| (self.size_of)(&target.path).map(|size| size.0));
        let asked = Some(target.max_size).filter(|end| *end > 0);
        let beyond = asked.zip(known).filter(|(end, size)| end > size);
        if let Some((end, size)) = beyond {
            notes.say(format!(
                "-f (MaxFileSize): '{}' has {} and no {}: all of it is used",
                target.path,
                shown(size),
                shown(end)
            ));
        }
        // Another span creates the file larger than this one requires.
        let smaller = made.filter(|size| largest.is_some_and(|largest| *size < largest));
        (made, asked.filter(|_| beyond.is_none()).into_iter().chain(smaller).min())
    }
}

/// Checks the number of threads.
fn check_number(span: &TimeSpan) -> Result<(), Error> {
    let number: u64 = span.targets.iter().map(|target| u64::from(threads(span, target))).sum();
    if number <= THREADS_MAX {
        return Ok(());
    }
    let problem =
        format!("{number} threads, each counted for each of its targets: at most {THREADS_MAX} are run");
    Err(Error::new("-t or -F (ThreadsPerFile, ThreadCount)", problem))
}

fn jobs(span: &TimeSpan, sizes: &Sizes<'_>, machine: &Machine, notes: &mut Notes) -> Result<Vec<Job>, Error> {
    let processors = processors(span, machine)?;
    let mut jobs: Vec<Job> = Vec::new();
    let mut threads_before = 0;
    for (place, (used, threads)) in groups(span).into_iter().enumerate() {
        let first = jobs.len();
        for (target, weight) in used {
            let share = Share { target, weight, place, threads };
            let affinity = rotated(processors.as_ref(), threads_before);
            let job = Job { affinity, ..job(span, &share, sizes, notes) };
            match jobs[first..].last_mut() {
                // Threads with the same workload on several targets form one job.
                Some(last) if is_alike(last, &job) => {
                    last.name = format!("{threads} threads");
                    last.targets.extend(job.targets);
                }
                Some(last) if last.priority != job.priority => {
                    let problem = format!("'{}' has another priority than '{}'", target.path, last.name);
                    return Err(Error::new("IOPriority with -F (ThreadCount)", problem).remedy(
                        "Linux gives a thread one I/O priority: give both the same, or each threads of its own, ThreadsPerFile",
                    ));
                }
                last => {
                    let same_threads = last.is_some();
                    jobs.push(Job { same_threads, ..job });
                }
            }
        }
        threads_before += threads as usize;
    }
    Ok(jobs)
}

/// A target of a group of threads.
struct Share<'a> {
    target: &'a Target,
    /// Weight of the target among those of the group.
    weight: u32,
    /// Index of the group in its span.
    place: usize,
    /// Number of threads in the group.
    threads: u32,
}

/// Returns the job of a group of threads on one of its targets.
fn job(span: &TimeSpan, share: &Share<'_>, sizes: &Sizes<'_>, notes: &mut Notes) -> Job {
    let Share { target, weight, place, threads } = *share;
    let (size, end) = sizes.for_target(target, notes);
    let workload = workload(span, target, threads, end);
    Job {
        targets: vec![TargetUse { name: target.path.clone(), weight }],
        threads,
        threads_shared: span.thread_count > 0,
        depth_shared: span.requests_are_shared(),
        size: size.map(Bytes),
        opening: opening(span, target),
        priority: priority(target.priority),
        ..Job::on(&target.path, Workload { seed: seed(span, place), ..workload })
    }
}

/// Returns true if two jobs differ only in their targets.
fn is_alike(one: &Job, other: &Job) -> bool {
    let (name, targets, same_threads) = (one.name.clone(), one.targets.clone(), one.same_threads);
    *one == Job { name, targets, same_threads, ..other.clone() }
}

/// Targets with their weights, and the number of threads that use them.
type Group<'a> = (Vec<(&'a Target, u32)>, u32);

/// Groups the threads of a span by their targets. Threads without targets are left out.
fn groups(span: &TimeSpan) -> Vec<Group<'_>> {
    if span.thread_count == 0 {
        return span.targets.iter().map(|target| (vec![(target, target.weight)], target.threads)).collect();
    }
    let mut groups: Vec<Group<'_>> = Vec::new();
    for thread in 0..span.thread_count {
        let used = span.targets.iter().filter_map(|target| Some((target, weight(target, thread)?)));
        let used: Vec<_> = used.collect();
        match groups.iter_mut().find(|(known, _)| *known == used) {
            Some((_, threads)) => *threads += 1,
            None if used.is_empty() => {}
            None => groups.push((used, 1)),
        }
    }
    groups
}

/// Returns the weight of `target` for `thread`; `None` if the thread does not use it.
fn weight(target: &Target, thread: u32) -> Option<u32> {
    let own = target.thread_targets.iter().find(|each| each.thread == thread);
    match own {
        Some(each) if each.weight > 0 => Some(each.weight),
        None if !target.thread_targets.is_empty() => None,
        _ => Some(target.weight),
    }
}

/// Returns the number of threads that use `target`.
pub(super) const fn threads(span: &TimeSpan, target: &Target) -> u32 {
    if span.thread_count > 0 { span.thread_count } else { target.threads }
}

/// Returns the processors for assignment in turn; `None` leaves placement to the scheduler.
fn processors(span: &TimeSpan, machine: &Machine) -> Result<Option<Vec<u32>>, Error> {
    if span.affinity_disabled {
        return Ok(None);
    }
    if span.affinity.is_empty() {
        return Ok(Some(machine.processors.clone()));
    }
    for processor in &span.affinity {
        let typed = format!("-ag{},{}", processor.group, processor.number);
        let group = format!("group {}, {}: ", processor.group, processor.number);
        let group = Some(group).filter(|_| processor.group > 0).unwrap_or_default();
        processors::check(&[processor.number()], machine)
            .map_err(|problem| Error::new(typed, format!("{group}{problem}")))?;
    }
    Ok(Some(span.affinity.iter().map(|processor| processor.number()).collect()))
}

/// Returns the affinity of the next group: assignment in turn continues from group to group.
fn rotated(processors: Option<&Vec<u32>>, threads_before: usize) -> Affinity {
    match processors {
        None => Affinity::Any,
        Some(processors) if processors.is_empty() => Affinity::Any,
        Some(processors) => {
            let mut rotated = processors.clone();
            rotated.rotate_left(threads_before % processors.len());
            Affinity::Each(rotated)
        }
    }
}

/// Returns the seed of the job at `place`. DiskSpd's seeds have 32 bits, so the jobs' seeds are distinct.
pub(super) fn seed(span: &TimeSpan, place: usize) -> u64 {
    u64::from(span.seed) + ((place as u64) << 32)
}
