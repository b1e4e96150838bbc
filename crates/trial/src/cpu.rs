//! Use of the processors during a window.

use plumb_linux::tree::process::{ProcessStat, TICK};
use plumb_linux::tree::{LiveTree, ProcessorTimes};
use plumb_load::{CpuUse, ProcessorUse};

/// Times of each processor at one moment.
pub(crate) type Processors = Vec<(u32, ProcessorTimes)>;

/// Returns the current times of each processor.
pub(crate) fn processors() -> Processors {
    ProcessorTimes::read_each(&LiveTree)
}

/// Returns the use of each processor between two moments.
pub(crate) fn between(before: &Processors, after: &Processors) -> Vec<ProcessorUse> {
    let ticks = |now: u64, then: u64| TICK * now.saturating_sub(then);
    let each = after.iter().filter_map(|(number, now)| {
        let (_, then) = before.iter().find(|(known, _)| known == number)?;
        Some(ProcessorUse {
            number: *number,
            user: ticks(now.user, then.user),
            kernel: ticks(now.system, then.system),
            idle: ticks(now.idle + now.io_wait, then.idle + then.io_wait),
        })
    });
    each.collect()
}

/// Returns the processor time of all threads of this process.
pub(crate) fn of_this_process() -> Option<CpuUse> {
    let stat = ProcessStat::read(&LiveTree, "self")?;
    Some(CpuUse { user: stat.user, system: stat.system })
}

/// Returns the processor time of the calling thread.
pub(crate) fn of_this_thread() -> Option<CpuUse> {
    let times = plumb_linux::thread::cpu_times();
    Some(CpuUse { user: times.user, system: times.system })
}
