//! Attribution of flushes to threads by the kernel's tracing of requests, in a trace instance of our own
//! (Documentation/trace/ftrace.rst, "Instances"; include/trace/events/block.h, `block_bio_queue`).
//!
//! The counters of a block device include the requests of all programs. Tracing names the thread that
//! submitted a flush, which distinguishes the flushes of this process from those of the journal and of other
//! programs. It requires root and a mounted tracefs; nothing is mounted for it, and other users of tracing
//! are not affected. Only flushes are traced, so a load without any costs nothing.
//!
//! The [instance](crate::tracing) is removed when the trace is dropped.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind as IoKind, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;

use plumb_block::{Errno, Result};

use crate::tracing::instance::{device_filter, device_number, failed};
use crate::tracing::{Instance, Tracefs};
use crate::tree::LiveTree;
use crate::tree::process::ProcessStat;

/// Event for a request that a thread submits to a block device.
const EVENT: &str = "events/block/block_bio_queue";
/// Buffer size for each processor in KiB, enough for several hundred thousand flushes between two reads.
const BUFFER_KIB: &str = "4096";
/// Name of the threads of this process that record the measurement, whose flushes do not count.
pub const RECORDER: &str = "plumb-recorder";
/// `PF_KTHREAD` of include/linux/sched.h, in the ninth field of /proc/PID/stat.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// Number of flushes submitted to the devices, by submitter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TracedFlushes {
    /// Flushes by threads of this process.
    pub own: u64,
    /// Flushes by kernel threads: the journal of a file system, on behalf of any program.
    pub kernel: u64,
    /// Flushes by other programs.
    pub others: u64,
    /// Number of events that the kernel dropped; if there are any, the counts are lower bounds.
    pub lost: u64,
}

/// A trace of the flushes of some block devices.
pub struct FlushTrace {
    /// Closed before the instance is removed, since the open descriptor keeps the instance busy.
    pipe: File,
    instance: Instance,
    /// Incomplete line at the end of the last read.
    rest: String,
    /// Threads of this process, and whether their flushes count.
    threads: HashMap<u32, bool>,
    /// Thread whose flushes do not count, in addition to threads named [`RECORDER`].
    except: Option<u32>,
    counted: TracedFlushes,
}

impl FlushTrace {
    /// Starts to trace the flushes of the devices with these kernel names. Flushes of the thread `except`,
    /// and of threads named [`RECORDER`], are excluded.
    ///
    /// # Errors
    /// If tracing is not possible: not root, no tracefs, a container.
    pub fn begin(devices: &[String], except: Option<u32>) -> Result<Self> {
        let instance = Instance::make(&Tracefs::mounted()?, "flushes")?;
        let pipe = start(&instance, devices)?;
        let (rest, counted) = (String::new(), TracedFlushes::default());
        let mut trace = Self { pipe, instance, rest, threads: HashMap::new(), except, counted };
        trace.learn_threads();
        Ok(trace)
    }

    /// Returns the flushes since the trace began. Call it several times a second while threads start and end,
    /// so that they are recognised.
    ///
    /// # Errors
    /// Fails as read(2) does.
    pub fn read(&mut self) -> Result<TracedFlushes> {
        self.learn_threads();
        let mut buffer = [0; 1 << 16];
        loop {
            match self.pipe.read(&mut buffer) {
                Ok(0) => break,
                Ok(length) => self.take(&String::from_utf8_lossy(&buffer[..length])),
                Err(error) if error.kind() == IoKind::WouldBlock => break,
                Err(error) if error.kind() == IoKind::Interrupted => {}
                Err(error) => return Err(failed(&error, self.instance.path().display())),
            }
        }
        Ok(self.counted)
    }

    /// Counts the complete lines in `text`.
    fn take(&mut self, text: &str) {
        self.rest.push_str(text);
        let whole = self.rest.rfind('\n').map_or(0, |end| end + 1);
        let lines = self.rest.drain(..whole).collect::<String>();
        for event in lines.lines().filter_map(Event::parse) {
            match event {
                Event::Lost(events) => self.counted.lost += events,
                Event::Flush { thread, process } => match self.threads.get(&thread) {
                    Some(is_measured) => self.counted.own += u64::from(*is_measured),
                    // A thread that started and ended between two reads, as io_uring's threads do under a
                    // short load.
                    None if process == Some(std::process::id()) => self.counted.own += 1,
                    None if is_of_kernel(thread) => self.counted.kernel += 1,
                    None => self.counted.others += 1,
                },
            }
        }
    }

    /// Records the threads of this process, including those of io_uring.
    fn learn_threads(&mut self) {
        let Ok(tasks) = fs::read_dir("/proc/self/task") else { return };
        for task in tasks.flatten() {
            let Some(thread) = task.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            self.threads.entry(thread).or_insert_with(|| {
                let name = fs::read_to_string(task.path().join("comm")).unwrap_or_default();
                Some(thread) != self.except && name.trim_end() != RECORDER
            });
        }
    }
}

/// A line of the trace.
#[derive(Debug, PartialEq, Eq)]
enum Event {
    /// A flush, with its process if the kernel knows it.
    Flush {
        thread: u32,
        process: Option<u32>,
    },
    Lost(u64),
}

impl Event {
    /// Parses a line: `NAME-THREAD (PROCESS) [CPU] FLAGS TIME: block_bio_queue: MAJOR,MINOR RWBS SECTOR +
    /// LENGTH [NAME]`, where a name may contain anything and dashes mean an unknown process, or `CPU:0 [LOST
    /// 12 EVENTS]`. `None` for other lines.
    fn parse(line: &str) -> Option<Self> {
        if let Some((_, lost)) = line.split_once("[LOST ").filter(|_| line.starts_with("CPU:")) {
            return Some(Self::Lost(
                lost.split_once(" EVENTS").and_then(|(n, _)| n.parse().ok()).unwrap_or(1),
            ));
        }
        let (before, _) = line.rsplit_once(": block_bio_queue: ")?;
        let (who, _) = before.rsplit_once(" [")?;
        let with_process = who.strip_suffix(')').and_then(|who| who.rsplit_once('('));
        let (who, process) = with_process.unwrap_or((who, ""));
        let (_, thread) = who.trim_end().rsplit_once('-')?;
        Some(Self::Flush { thread: thread.parse().ok()?, process: process.trim().parse().ok() })
    }
}

/// Enables the event for flushes of `devices`, and opens the trace for reading.
fn start(instance: &Instance, devices: &[String]) -> Result<File> {
    let devices = device_filter(devices.iter().filter_map(|device| device_number(device)));
    instance.write("buffer_size_kb", BUFFER_KIB)?;
    // Before Linux 4.13 only threads seen in /proc are recognised.
    instance.write("options/record-tgid", "1").or_else(|error| match error.errno() {
        Some(Errno(2)) => Ok(()),
        _ => Err(error),
    })?;
    // The first letter F means a flush of the cache before the request (blk_fill_rwbs).
    instance.write(&format!("{EVENT}/filter"), &format!("rwbs ~ \"F*\" && ({devices})"))?;
    let pipe = instance.path().join("trace_pipe");
    let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(&pipe);
    let opened = opened.map_err(|error| failed(&error, pipe.display()))?;
    instance.write(&format!("{EVENT}/enable"), "1")?;
    Ok(opened)
}

/// Returns true if a thread belongs to the kernel. A thread that has ended counts as a program's, since
/// journal threads persist.
fn is_of_kernel(thread: u32) -> bool {
    ProcessStat::read(&LiveTree, thread).is_some_and(|stat| stat.flags & KERNEL_THREAD != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_the_thread_whatever_it_is_called() {
        let line = "           plumb-1234    [001] ..... 12.100001: block_bio_queue: 7,0 FWS 0 + 0 [plumb]";
        assert_eq!(Event::parse(line), Some(Event::Flush { thread: 1234, process: None }));
        let line = "  a-b [1] c-d-77  [000] d..1. 9.1: block_bio_queue: 254,0 FWFSM 512 + 8 [a-b [1] c-d]";
        assert_eq!(Event::parse(line), Some(Event::Flush { thread: 77, process: None }));
        for (process, known) in [("  26343", Some(26343)), ("-------", None)] {
            let line = format!(
                "   iou-wrk-1 (2)-26345   ({process}) [001] ..... 3.4: block_bio_queue: 254,0 FWS 0 + 0 [iou-wrk-1 (2)]"
            );
            assert_eq!(Event::parse(&line), Some(Event::Flush { thread: 26345, process: known }), "{line}");
        }
        assert_eq!(Event::parse("CPU:3 [LOST 41 EVENTS]"), Some(Event::Lost(41)));
        for line in ["", "# tracer: nop", "x-y [0] . 1: block_rq_issue: 7,0 FF 0 () 0 + 0 none,0,0 [x]"] {
            assert_eq!(Event::parse(line), None, "{line}");
        }
    }

    #[test]
    fn this_thread_is_no_thread_of_the_kernel() {
        assert!(!is_of_kernel(std::process::id()));
        assert!(!is_of_kernel(u32::MAX));
    }
}
