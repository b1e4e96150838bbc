//! Notes for the user: options that differ on Linux or have no effect here.

use plumb_measure::SERIES_BUCKET;

use super::profile::{CacheMode, MappedFlush, Precreate, Profile, Target, TimeSpan, WriteContent};

/// Distinct notes.
#[derive(Debug, Default)]
pub(super) struct Notes {
    pub(super) said: Vec<String>,
}

impl Notes {
    /// Adds the notes about the run as a whole.
    pub(super) fn of_profile(&mut self, profile: &Profile) {
        self.when(profile.etw.is_some(), "-e (ETW): there is no Windows event tracing; nothing is traced");
        self.when(
            profile.experiment_flags > 0,
            "-: (ExperimentFlags): DiskSpd's experiments concern its own way of waiting; they have no \
             effect here",
        );
        self.when(
            profile.verbose_stats,
            "-vs (VerboseStats): threads wait in another way than DiskSpd's; the counters that exist here \
             are printed",
        );
        self.when(
            !matches!(profile.precreate, Precreate::None | Precreate::UseMaxSize),
            "PrecreateFiles: each file is made before the first time span that names it",
        );
    }

    /// Adds the notes about a time span and its targets.
    pub(super) fn of_span(&mut self, span: &TimeSpan) {
        self.when(
            span.completion_routines,
            "-x (CompletionRoutines): Linux has one way to complete I/O; the requests are the same",
        );
        let tenth = (SERIES_BUCKET.0 / 1_000_000) as u32;
        if span.iops_deviation && !span.bucket_ms.is_multiple_of(tenth) {
            let whole = span.bucket_ms.div_ceil(tenth) * tenth;
            self.say(format!(
                "-D{} (IoBucketDuration): I/Os are counted in whole {tenth} ms, so intervals are {whole} ms",
                span.bucket_ms
            ));
        }
        self.when(
            span.seed != 0 && !span.targets.iter().any(|target| draws(span, target)),
            "-z (RandSeed): nothing here follows from a seed",
        );
        self.when(
            span.request_count > 0 && span.thread_count == 0,
            "-O (RequestCount): counts only with threads in all, -F (ThreadCount)",
        );
        self.when(span.duration == 0, "-d0 (Duration): it warms up and cools down, and nothing is measured");
        for target in &span.targets {
            self.when(
                target.throughput.is_some() && target.burst > 0,
                "-i, -j (BurstSize, ThinkTime): the throttle, -g (Throughput), takes their place",
            );
            self.of_caches(span, target);
            self.of_hints(target);
            self.of_offsets(span, target);
            self.of_writes(span, target);
        }
    }

    /// Adds the notes about options for writes of a target that is not written.
    fn of_writes(&mut self, span: &TimeSpan, target: &Target) {
        if target.write_percent > 0 {
            return;
        }
        self.when(
            span.random_write_data || target.content != WriteContent::Counting,
            "-Z (WriteBufferContent, RandomWriteData): nothing is written, so nothing is carried",
        );
        // With -Su, the part of -Sh about caching also affects reads.
        self.when(
            target.write_through && (target.mapped || target.cache == CacheMode::Cached),
            "-Sw (WriteThrough): nothing is written, so nothing is written through",
        );
    }

    fn of_caches(&mut self, span: &TimeSpan, target: &Target) {
        self.when(
            target.cache == CacheMode::LocalOff && !target.mapped,
            "-Sr (DisableLocalCache): on a local file this is O_DIRECT",
        );
        self.when(
            target.is_drive() && target.cache == CacheMode::Cached,
            "#N is always opened past the page cache (O_DIRECT)",
        );
        self.when(
            target.mapped && target.write_through && target.flush.is_none() && target.write_percent > 0,
            "-Smw: write-through on a mapping is msync after each write",
        );
        self.when(
            target.mapped && (target.requests > 1 || span.requests_are_shared()),
            "-Sm (MemoryMappedIo): loads and stores come one after the other; each thread has one outstanding",
        );
        self.when(
            target.mapped && target.cache == CacheMode::LocalOff,
            "-Smr: a mapping always goes through the page cache",
        );
        self.when(
            target.flush == Some(MappedFlush::NonVolatileMemory),
            "-Nn (FlushType): flushed by msync, whatever the medium",
        );
        self.when(
            target.flush == Some(MappedFlush::NonVolatileMemoryNoDrain),
            "-Ni (FlushType): flushed by msync, which waits for the drain",
        );
        self.when(
            target.flush.is_some() && target.write_percent == 0,
            "-N (FlushType): nothing is written, so nothing is flushed",
        );
    }

    fn of_hints(&mut self, target: &Target) {
        let hints = target.hints;
        self.when(
            hints.random || hints.sequential,
            "-fr, -fs (RandomAccess, SequentialScan): no hint is given; the kernel's readahead finds the pattern \
             itself",
        );
        self.when(
            hints.temporary,
            "-ft (TemporaryFile): Linux has no temporary files that are written back later",
        );
        self.when(
            target.large_pages,
            "-l (UseLargePages): buffers are of the usual pages; the requests are the same",
        );
    }

    fn of_offsets(&mut self, span: &TimeSpan, target: &Target) {
        let threads = if span.thread_count > 0 { span.thread_count } else { target.threads };
        let sequential = target.random_percent == 0;
        self.when(
            target.parallel && target.requests == 1,
            "-p (ParallelAsyncIO): with one outstanding I/O, -o1, nothing is parallel",
        );
        self.when(
            target.interlocked && threads == 1,
            "-si (InterlockedSequential): with one thread, its offset is not shared",
        );
        self.when(
            sequential && !target.interlocked && threads > 1 && target.thread_stride == 0,
            "threads that start at one offset do not make the target's I/O sequential; -si shares the offset, -T \
             sets them apart",
        );
        self.when(
            target.weight != 1 && !span.requests_are_shared(),
            "Weight: counts only with ThreadCount and RequestCount",
        );
    }

    fn when(&mut self, holds: bool, note: &str) {
        if holds {
            self.say(note.to_owned());
        }
    }

    /// Adds `note` unless present.
    pub(super) fn say(&mut self, note: String) {
        if !self.said.contains(&note) {
            self.said.push(note);
        }
    }
}

/// Returns true if the seed affects a target.
const fn draws(span: &TimeSpan, target: &Target) -> bool {
    let noise = span.random_write_data
        || matches!(target.content, WriteContent::Random | WriteContent::Buffer { file: None, .. });
    let mixed = target.write_percent > 0 && target.write_percent < 100;
    target.random_percent > 0 || mixed || (target.write_percent > 0 && noise)
}
