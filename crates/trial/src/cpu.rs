//! Use of the processors during a window.

use plumb_block::Nanos;
use plumb_load::{CpuUse, ProcessorUse};
use plumb_measure::process::{ProcessorTimes, surroundings};

/// Each processor at one moment.
pub(crate) type Processors = Vec<(u32, ProcessorTimes)>;

/// Returns each processor now.
pub(crate) fn processors() -> Processors {
    surroundings::each_processor()
}

/// Returns what each processor did between two moments.
pub(crate) fn between(before: &Processors, after: &Processors) -> Vec<ProcessorUse> {
    let ticks = |now: u64, then: u64| Nanos(ProcessorTimes::TICK.0 * now.saturating_sub(then));
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

/// Returns the processor time of all threads of this process (/proc/self/stat, proc(5)).
pub(crate) fn of_this_process() -> Option<CpuUse> {
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program may hold spaces and parentheses; what follows it does not.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let ticks = |index: usize| Some(Nanos(ProcessorTimes::TICK.0 * fields.get(index)?.parse::<u64>().ok()?));
    Some(CpuUse { user: ticks(11)?, system: ticks(12)? })
}

/// Returns the processor time of the calling thread.
pub(crate) fn of_this_thread() -> Option<CpuUse> {
    let times = plumb_linux::thread::cpu_times();
    Some(CpuUse { user: times.user, system: times.system })
}
