//! Whose flushes they were: the kernel's tracing of requests, in an instance of our own
//! (Documentation/trace/ftrace.rst, "Instances"; include/trace/events/block.h, `block_bio_queue`).
//!
//! The counters of a block device tell what all programs asked of it. Tracing names the thread that handed a
//! flush to the device, so those of this process can be told from those of the journal and of others. It
//! takes root and a tracefs that is mounted; nothing is mounted for it, and what other users of tracing see
//! does not change. Only flushes are traced: a load without any costs nothing.
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

/// The event: a request is handed to a block device, by the thread that asks.
const EVENT: &str = "events/block/block_bio_queue";
/// Buffer size for each processor in KiB, enough for some hundred thousand flushes between two readings.
const BUFFER_KIB: &str = "4096";
/// Name of the threads of this process whose flushes are not part of what is measured: they record it.
pub const RECORDER: &str = "plumb-recorder";
/// `PF_KTHREAD` of include/linux/sched.h, in the ninth field of /proc/PID/stat.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// Number of flushes that were handed to the devices, by who asked for them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TracedFlushes {
    /// Threads of this process.
    pub own: u64,
    /// Threads of the kernel: the journal of a file system, for whomever it works.
    pub kernel: u64,
    /// Other programs.
    pub others: u64,
    /// Events that the kernel had no room for: the counts are lower bounds if there are any.
    pub lost: u64,
}

/// A trace of the flushes of some block devices.
pub struct FlushTrace {
    /// Closed before the instance is removed: its descriptor holds it.
    pipe: File,
    instance: Instance,
    /// Beginning of the last event, where a reading ended within it.
    rest: String,
    /// The threads of this process, and whether what they flush is measured.
    threads: HashMap<u32, bool>,
    /// A thread that measures nothing, beside those of the name [`RECORDER`].
    except: Option<u32>,
    counted: TracedFlushes,
}

impl FlushTrace {
    /// Begins to trace the flushes of the devices with these kernel names. Flushes of the thread `except`,
    /// and of threads that are called [`RECORDER`], are left out.
    ///
    /// # Errors
    /// If tracing is not possible here: who is not root, no tracefs, a container.
    pub fn begin(devices: &[String], except: Option<u32>) -> Result<Self> {
        let instance = Instance::make(&Tracefs::mounted()?, "flushes")?;
        let pipe = start(&instance, devices)?;
        let (rest, counted) = (String::new(), TracedFlushes::default());
        let mut trace = Self { pipe, instance, rest, threads: HashMap::new(), except, counted };
        trace.learn_threads();
        Ok(trace)
    }

    /// Returns all flushes since the trace began. Call it several times a second while threads come and go,
    /// so that they are known.
    ///
    /// # Errors
    /// As read(2).
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

    /// Counts the whole lines of what was read.
    fn take(&mut self, text: &str) {
        self.rest.push_str(text);
        let whole = self.rest.rfind('\n').map_or(0, |end| end + 1);
        let lines = self.rest.drain(..whole).collect::<String>();
        for event in lines.lines().filter_map(Event::parse) {
            match event {
                Event::Lost(events) => self.counted.lost += events,
                Event::Flush { thread, process } => match self.threads.get(&thread) {
                    Some(is_measured) => self.counted.own += u64::from(*is_measured),
                    // One that came and went between two looks, as those of io_uring do with a short load.
                    None if process == Some(std::process::id()) => self.counted.own += 1,
                    None if is_of_kernel(thread) => self.counted.kernel += 1,
                    None => self.counted.others += 1,
                },
            }
        }
    }

    /// Remembers the threads of this process, those that io_uring made for it too.
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

/// One line of the trace.
#[derive(Debug, PartialEq, Eq)]
enum Event {
    /// A flush, with its process where the kernel knows it.
    Flush {
        thread: u32,
        process: Option<u32>,
    },
    Lost(u64),
}

impl Event {
    /// From
    /// `NAME-THREAD (PROCESS) [CPU] FLAGS TIME: block_bio_queue: MAJOR,MINOR RWBS SECTOR + LENGTH [NAME]`; a
    /// name may hold anything, and dashes stand for an unknown process. Also `CPU:0 [LOST 12 EVENTS]`. `None`
    /// of other lines.
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

/// Turns the event on for flushes of `devices`, and opens what is to be read.
fn start(instance: &Instance, devices: &[String]) -> Result<File> {
    let devices = device_filter(devices.iter().filter_map(|device| device_number(device)));
    instance.write("buffer_size_kb", BUFFER_KIB)?;
    // Before Linux 4.13 only those threads are known that were seen in /proc.
    instance.write("options/record-tgid", "1").or_else(|error| match error.errno() {
        Some(Errno(2)) => Ok(()),
        _ => Err(error),
    })?;
    // The first letter says that the cache is to be flushed first (blk_fill_rwbs).
    instance.write(&format!("{EVENT}/filter"), &format!("rwbs ~ \"F*\" && ({devices})"))?;
    let pipe = instance.path().join("trace_pipe");
    let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(&pipe);
    let opened = opened.map_err(|error| failed(&error, pipe.display()))?;
    instance.write(&format!("{EVENT}/enable"), "1")?;
    Ok(opened)
}

/// Returns true if a thread is the kernel's own. One that is gone was a program's: the threads of journals
/// stay.
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
