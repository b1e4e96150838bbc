//! Elements of a profile that contain a number or flag: one table for reading and writing.

use super::profile::{EtwSettings, Profile, Target, TimeSpan};

/// An element with a number or flag of a `T`.
pub(super) struct Field<T> {
    /// Name of the element.
    pub(super) name: &'static str,
    /// Access to the number or flag.
    pub(super) slot: fn(&mut T) -> Slot<'_>,
    /// Minimum and maximum value.
    pub(super) least: u64,
    pub(super) most: u64,
    /// True to omit the element if the value is 0 or false.
    pub(super) is_sparse: bool,
}

/// A number or a flag.
pub(super) enum Slot<'a> {
    Flag(&'a mut bool),
    Byte(&'a mut u8),
    Int(&'a mut u32),
    Long(&'a mut u64),
}

impl<T> Field<T> {
    const fn flag(name: &'static str, slot: fn(&mut T) -> Slot<'_>) -> Self {
        Self { name, slot, least: 0, most: 1, is_sparse: false }
    }

    const fn int(name: &'static str, slot: fn(&mut T) -> Slot<'_>) -> Self {
        Self { name, slot, least: 0, most: u32::MAX as u64, is_sparse: false }
    }

    const fn long(name: &'static str, slot: fn(&mut T) -> Slot<'_>) -> Self {
        Self { name, slot, least: 0, most: u64::MAX, is_sparse: false }
    }

    const fn least(self, least: u64) -> Self {
        Self { least, ..self }
    }

    const fn most(self, most: u64) -> Self {
        Self { most, ..self }
    }

    const fn sparse(self) -> Self {
        Self { is_sparse: true, ..self }
    }
}

/// Elements of a profile, in groups with other elements between them.
pub(super) const PROFILE: [&[Field<Profile>]; 2] = [
    &[
        Field::int("Progress", |profile| Slot::Int(&mut profile.progress)),
        Field::int("ExperimentFlags", |profile: &mut Profile| Slot::Int(&mut profile.experiment_flags))
            .sparse(),
    ],
    &[
        Field::flag("Verbose", |profile| Slot::Flag(&mut profile.verbose)),
        Field::flag("VerboseStats", |profile: &mut Profile| Slot::Flag(&mut profile.verbose_stats)).sparse(),
    ],
];

/// Elements of Windows event tracing.
pub(super) const ETW: [Field<EtwSettings>; 12] = [
    Field::flag("Process", |etw| Slot::Flag(&mut etw[0])),
    Field::flag("Thread", |etw| Slot::Flag(&mut etw[1])),
    Field::flag("ImageLoad", |etw| Slot::Flag(&mut etw[2])),
    Field::flag("DiskIO", |etw| Slot::Flag(&mut etw[3])),
    Field::flag("MemoryPageFaults", |etw| Slot::Flag(&mut etw[4])),
    Field::flag("MemoryHardFaults", |etw| Slot::Flag(&mut etw[5])),
    Field::flag("Network", |etw| Slot::Flag(&mut etw[6])),
    Field::flag("Registry", |etw| Slot::Flag(&mut etw[7])),
    Field::flag("UsePagedMemory", |etw| Slot::Flag(&mut etw[8])),
    Field::flag("UsePerfTimer", |etw| Slot::Flag(&mut etw[9])),
    Field::flag("UseSystemTimer", |etw| Slot::Flag(&mut etw[10])),
    Field::flag("UseCyclesCounter", |etw| Slot::Flag(&mut etw[11])),
];

/// Elements of a time span.
pub(super) const TIME_SPAN: [Field<TimeSpan>; 12] = [
    Field::flag("CompletionRoutines", |span| Slot::Flag(&mut span.completion_routines)),
    Field::flag("MeasureLatency", |span| Slot::Flag(&mut span.measure_latency)),
    Field::flag("CalculateIopsStdDev", |span| Slot::Flag(&mut span.iops_deviation)),
    Field::flag("DisableAffinity", |span| Slot::Flag(&mut span.affinity_disabled)),
    Field::int("Duration", |span| Slot::Int(&mut span.duration)),
    Field::int("Warmup", |span| Slot::Int(&mut span.warmup)),
    Field::int("Cooldown", |span| Slot::Int(&mut span.cooldown)),
    Field::int("ThreadCount", |span| Slot::Int(&mut span.thread_count)),
    Field::int("RequestCount", |span| Slot::Int(&mut span.request_count)),
    Field::int("IoBucketDuration", |span: &mut TimeSpan| Slot::Int(&mut span.bucket_ms)).least(1),
    Field::int("RandSeed", |span| Slot::Int(&mut span.seed)),
    Field::flag("RandomWriteData", |span: &mut TimeSpan| Slot::Flag(&mut span.random_write_data)).sparse(),
];

/// Elements of a target, in groups with other elements between them.
pub(super) const TARGET: [&[Field<Target>]; 6] = [
    &[
        Field::int("BlockSize", |target: &mut Target| Slot::Int(&mut target.block)).least(1),
        Field::long("BaseFileOffset", |target| Slot::Long(&mut target.base)),
        Field::flag("SequentialScan", |target| Slot::Flag(&mut target.hints.sequential)),
        Field::flag("RandomAccess", |target| Slot::Flag(&mut target.hints.random)),
        Field::flag("TemporaryFile", |target| Slot::Flag(&mut target.hints.temporary)),
        Field::flag("UseLargePages", |target| Slot::Flag(&mut target.large_pages)),
    ],
    &[
        Field::flag("WriteThrough", |target: &mut Target| Slot::Flag(&mut target.write_through)).sparse(),
        Field::flag("MemoryMappedIo", |target: &mut Target| Slot::Flag(&mut target.mapped)).sparse(),
    ],
    &[
        Field::flag("ParallelAsyncIO", |target| Slot::Flag(&mut target.parallel)),
        Field::int("BurstSize", |target: &mut Target| Slot::Int(&mut target.burst)).sparse(),
        Field::int("ThinkTime", |target: &mut Target| Slot::Int(&mut target.think_ms)).sparse(),
    ],
    &[
        Field::long("ThreadStride", |target| Slot::Long(&mut target.thread_stride)),
        Field::long("MaxFileSize", |target| Slot::Long(&mut target.max_size)),
        Field::int("RequestCount", |target: &mut Target| Slot::Int(&mut target.requests)).least(1),
        Field::int("WriteRatio", |target: &mut Target| Slot::Byte(&mut target.write_percent)).most(100),
    ],
    &[Field::int("ThreadsPerFile", |target: &mut Target| Slot::Int(&mut target.threads)).least(1)],
    &[Field::int("Weight", |target| Slot::Int(&mut target.weight))],
];
