//! Conflicts between options. The rules apply to command lines and profiles, so messages name both the switch
//! and the element.

use super::profile::{CacheMode, Profile, Target, TimeSpan, WriteContent};
use super::templates;
use crate::error::Error;

/// Returns an error if the condition holds, with a place and the arguments of the message.
macro_rules! refuse {
    ($wrong:expr, $place:expr, $($problem:tt)*) => {
        if $wrong {
            return Err(Error::new($place, format!($($problem)*)));
        }
    };
}

impl Profile {
    /// Checks all options together. `source` is the file of the profile, if any; `to_run` also checks the
    /// requirements for running it.
    ///
    /// # Errors
    /// The first conflict, named by switch and element.
    pub fn validate(&self, source: Option<&str>, to_run: bool) -> Result<(), Error> {
        let located = |error: Error, place: String| match source {
            Some(file) => Error { place: format!("{file}: {place}: {}", error.place), ..error },
            None => error,
        };
        if self.time_spans.is_empty() {
            return Err(located(Error::new("TimeSpans", "no time span"), "Profile".to_owned()));
        }
        for (number, span) in self.time_spans.iter().enumerate() {
            let place = format!("time span {}", number + 1);
            check_span(span).map_err(|error| located(error, place.clone()))?;
            for target in &span.targets {
                check_target(span, target, to_run)
                    .map_err(|error| located(error, format!("{place}, target '{}'", target.path)))?;
            }
        }
        Ok(())
    }
}

fn check_span(span: &TimeSpan) -> Result<(), Error> {
    refuse!(span.targets.is_empty(), "Targets", "no target");
    refuse!(
        span.affinity_disabled && !span.affinity.is_empty(),
        "-n (DisableAffinity)",
        "no affinity conflicts with a list of processors, -a (Affinity)"
    );
    Ok(())
}

fn check_target(span: &TimeSpan, target: &Target, to_run: bool) -> Result<(), Error> {
    templates::check_name(&target.path)?;
    refuse!(
        to_run && target.is_template(),
        &target.path,
        "the template '{}' was given no target; -Rp prints a profile without one",
        target.path
    );
    check_threads(span, target)?;
    check_pace(span, target)?;
    check_range(target)?;
    check_access(span, target)?;
    check_caching(span, target)?;
    check_content(target)
}

fn check_threads(span: &TimeSpan, target: &Target) -> Result<(), Error> {
    refuse!(
        span.thread_count > 0 && target.threads > 1,
        "-F (ThreadCount)",
        "{} threads in all conflict with {} for each target, -t (ThreadsPerFile)",
        span.thread_count,
        target.threads
    );
    if !span.requests_are_shared() {
        refuse!(
            !target.thread_targets.is_empty(),
            "ThreadTargets",
            "threads of a target need ThreadCount and RequestCount"
        );
        return Ok(());
    }
    refuse!(target.weight == 0, "Weight", "0: expected at least 1");
    let beyond = target.thread_targets.iter().find(|each| each.thread >= span.thread_count);
    let thread = beyond.map_or(0, |each| each.thread);
    refuse!(beyond.is_some(), "ThreadTarget", "thread {thread} of {}: they count from 0", span.thread_count);
    Ok(())
}

fn check_pace(span: &TimeSpan, target: &Target) -> Result<(), Error> {
    refuse!(
        target.throughput.is_some() && span.completion_routines,
        "-g (Throughput)",
        "a throttle conflicts with completion routines, -x (CompletionRoutines)"
    );
    refuse!(
        target.burst > 0 && target.think_ms == 0,
        "-i (BurstSize)",
        "bursts of {} need a time between them, -j (ThinkTime)",
        target.burst
    );
    refuse!(
        target.think_ms > 0 && target.burst == 0,
        "-j (ThinkTime)",
        "{} ms between bursts need the size of a burst, -i (BurstSize)",
        target.think_ms
    );
    if !span.requests_are_shared() {
        return Ok(());
    }
    let shared =
        format!("conflicts with {} outstanding over all targets, -O (RequestCount)", span.request_count);
    refuse!(target.throughput.is_some(), "-g (Throughput)", "a throttle {shared}");
    refuse!(target.think_ms > 0, "-j (ThinkTime)", "a time between bursts {shared}");
    refuse!(target.parallel, "-p (ParallelAsyncIO)", "parallel I/O {shared}");
    Ok(())
}

fn check_range(target: &Target) -> Result<(), Error> {
    refuse!(target.block == 0, "-b (BlockSize)", "0: expected at least 1 byte");
    let place = "-f or -B (MaxFileSize, BaseFileOffset)";
    refuse!(
        target.max_size > 0 && target.max_size <= target.base,
        place,
        "the range ends at {} and begins at {}: expected an end above",
        target.max_size,
        target.base
    );
    refuse!(
        target.max_size > 0 && target.max_size - target.base < u64::from(target.block),
        place,
        "the range from {} to {} holds no block of {}",
        target.base,
        target.max_size,
        target.block
    );
    refuse!(target.file_size == Some(0), "-c (FileSize)", "0: expected a size above 0");
    refuse!(
        target.file_size.is_some() && target.is_drive(),
        "-c (FileSize)",
        "{} is a drive, and drives are not made",
        target.path
    );
    let small = target.file_size.filter(|size| size.saturating_sub(target.base) < u64::from(target.block));
    refuse!(
        small.is_some(),
        "-c (FileSize)",
        "a file of {} holds no block of {} from {} on",
        small.unwrap_or(0),
        target.block,
        target.base
    );
    Ok(())
}

fn check_access(span: &TimeSpan, target: &Target) -> Result<(), Error> {
    if target.random_percent > 0 {
        refuse!(target.random_percent > 100, "-rs (RandomRatio)", "expected 1 to 100");
        refuse!(target.alignment == 0, "-r (Random)", "0 is not an alignment: expected at least 1");
        refuse!(
            target.thread_stride > 0,
            "-T (ThreadStride)",
            "an offset between threads conflicts with random I/O, -r (Random)"
        );
        refuse!(
            target.interlocked,
            "-si (InterlockedSequential)",
            "one shared offset conflicts with random I/O, -r (Random)"
        );
        refuse!(
            target.parallel,
            "-p (ParallelAsyncIO)",
            "parallel I/O conflicts with random I/O, -r (Random)"
        );
        let short = target.distribution.as_ref().and_then(|parts| parts.shorter_than(target.block));
        refuse!(
            short.is_some(),
            "-rdabs (Distribution)",
            "a part of {} bytes holds no block of {}",
            short.unwrap_or(0),
            target.block
        );
        return Ok(());
    }
    refuse!(
        target.distribution.is_some(),
        "-rd (Distribution)",
        "a distribution does not apply to sequential I/O: add -r (Random)"
    );
    refuse!(
        target.interlocked && target.thread_stride > 0,
        "-si (InterlockedSequential)",
        "one shared offset conflicts with an offset between threads, -T (ThreadStride)"
    );
    refuse!(
        target.interlocked && target.parallel,
        "-si (InterlockedSequential)",
        "one shared offset conflicts with parallel I/O, -p (ParallelAsyncIO)"
    );
    refuse!(
        target.thread_stride > 0 && span.thread_count <= 1 && target.threads <= 1,
        "-T (ThreadStride)",
        "{} between threads need more than one thread, -t or -F",
        target.thread_stride
    );
    Ok(())
}

fn check_caching(span: &TimeSpan, target: &Target) -> Result<(), Error> {
    if !target.mapped {
        refuse!(
            target.flush.is_some(),
            "-N (FlushType)",
            "a way to flush a mapping needs memory mapped I/O, -Sm (MemoryMappedIo)"
        );
        return Ok(());
    }
    refuse!(
        span.completion_routines,
        "-x (CompletionRoutines)",
        "completion routines conflict with memory mapped I/O, -Sm (MemoryMappedIo)"
    );
    refuse!(
        target.cache == CacheMode::Off,
        "-Sm (MemoryMappedIo)",
        "memory mapped I/O goes through the cache, and -Su or -Sh (DisableOSCache) turns it off"
    );
    refuse!(target.is_drive(), "-Sm (MemoryMappedIo)", "{} is a drive: only files are mapped", target.path);
    Ok(())
}

fn check_content(target: &Target) -> Result<(), Error> {
    match target.content {
        WriteContent::Buffer { size, .. } => {
            refuse!(
                size < u64::from(target.block),
                "-Z (RandomDataSource)",
                "a buffer of {size} is smaller than one block of {}",
                target.block
            );
            Ok(())
        }
        _ => Ok(()),
    }
}
