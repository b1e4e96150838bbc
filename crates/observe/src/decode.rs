//! Decodes records of the kernel's tracing into [`Event`]s, with the formats that the running kernel reports.

use plumb_block::{Errno, Result};
use plumb_linux::tracing::{EventFormat, Field, Record};

use crate::event::{Event, EventContent, Inode, Merge, Op, Request, SyncCall};

/// msync(2): wait until it is done.
const MS_SYNC: u64 = 4;
/// The kernel counts in sectors of 512 bytes.
const SECTOR: u64 = 512;

/// Meaning of the events with a certain name.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// An event of a request, with the constructor of its content.
    Request(fn(Request) -> EventContent),
    /// A transfer to a device without requests (zram, dm, md): its submission or its completion.
    Bio(fn(Request) -> EventContent),
    /// A sync begins.
    Enter(SyncCall),
    /// A sync ends.
    Exit,
    /// The file system of the synced file is known.
    SyncedOn,
    /// The file system has finished a sync.
    Synced,
    /// Writeback of a file failed.
    WritebackFailed,
    /// A writeback error was reported to a thread.
    ErrorReported,
    /// A task begins.
    TaskBegan,
    /// A task has another name.
    TaskNamed,
    /// A task ends.
    TaskEnded,
}

/// Events of block devices with requests.
pub(crate) const REQUEST_EVENTS: [(&str, Kind); 7] = [
    ("block/block_rq_insert", Kind::Request(EventContent::Inserted)),
    ("block/block_rq_issue", Kind::Request(EventContent::Issued)),
    ("block/block_rq_requeue", Kind::Request(EventContent::Requeued)),
    ("block/block_rq_complete", Kind::Request(EventContent::Completed)),
    ("block/block_bio_backmerge", Kind::Request(|request| EventContent::Merged(Merge::Back, request))),
    ("block/block_bio_frontmerge", Kind::Request(|request| EventContent::Merged(Merge::Front, request))),
    ("block/block_rq_merge", Kind::Request(|request| EventContent::Merged(Merge::Request, request))),
];

/// Events of block devices without requests.
pub(crate) const BIO_EVENTS: [(&str, Kind); 2] = [
    ("block/block_bio_queue", Kind::Bio(EventContent::Issued)),
    ("block/block_bio_complete", Kind::Bio(EventContent::Completed)),
];

/// Returns the events of the calls that make data durable, and of tasks: a task that has ended is known only
/// from them.
pub(crate) fn sync_events() -> impl Iterator<Item = (String, Kind)> {
    let calls = SyncCall::ALL.into_iter().flat_map(|call| {
        let event = |way: &str| format!("syscalls/sys_{way}_{}", call.name());
        [(event("enter"), Kind::Enter(call)), (event("exit"), Kind::Exit)]
    });
    let tasks = [
        ("task/task_newtask", Kind::TaskBegan),
        ("task/task_rename", Kind::TaskNamed),
        ("sched/sched_process_exit", Kind::TaskEnded),
    ];
    calls.chain(tasks.map(|(event, kind)| (event.to_owned(), kind)))
}

/// Events in which file systems report where a file is made durable; each exists only on a kernel with that
/// file system. A descriptor shows the file only while it is open. The events that report the end of a sync
/// also show syncs without a call, such as a write with `O_DSYNC`.
pub(crate) const FILE_SYSTEM_EVENTS: [(&str, Kind); 6] = [
    ("ext4/ext4_sync_file_enter", Kind::SyncedOn),
    ("ext4/ext4_sync_file_exit", Kind::Synced),
    ("xfs/xfs_file_fsync", Kind::SyncedOn),
    ("xfs/xfs_dir_fsync", Kind::SyncedOn),
    ("f2fs/f2fs_sync_file_enter", Kind::SyncedOn),
    ("f2fs/f2fs_sync_file_exit", Kind::Synced),
];

/// Events of writes that failed after the page cache had accepted them, since Linux 4.13
/// (include/trace/events/filemap.h).
pub(crate) const WRITEBACK_ERROR_EVENTS: [(&str, Kind); 2] = [
    ("filemap/filemap_set_wb_err", Kind::WritebackFailed),
    ("filemap/file_check_and_advance_wb_err", Kind::ErrorReported),
];

/// Low bits of an `errseq_t`, which hold the error (lib/errseq.c).
const ERRSEQ_ERRNO: u64 = 0xfff;
/// Bit above the error: the error was reported.
const ERRSEQ_SEEN: u64 = 0x1000;

/// Decoder with the learnt formats.
#[derive(Debug, Default)]
pub struct Decoder {
    /// Fields by the number of the event; the kernel's numbers are small.
    by_id: Vec<Option<Fields>>,
}

/// Positions of the fields of an event.
#[derive(Debug, Clone, Copy)]
struct Fields {
    thread: Field,
    of: Of,
}

#[derive(Debug, Clone, Copy)]
enum Of {
    Request {
        device: Field,
        sector: Field,
        sectors: Field,
        letters: Field,
        happened: fn(Request) -> EventContent,
    },
    Enter {
        call: SyncCall,
        fd: Option<Field>,
        flags: Option<Field>,
    },
    Exit {
        result: Field,
    },
    SyncedOn {
        device: Field,
    },
    Synced {
        result: Field,
    },
    WritebackFailed {
        device: Field,
        inode: Field,
        error: Field,
    },
    ErrorReported {
        device: Field,
        inode: Field,
        error: Field,
    },
    Task {
        task: Field,
        name: Field,
        happened: fn(u32, [u8; 16]) -> EventContent,
    },
    TaskEnded,
}

impl Decoder {
    /// Learns an event; `format` is the content of its format file.
    ///
    /// # Errors
    /// Fails if the format is invalid or lacks a field.
    pub fn learn(&mut self, format: &str, kind: Kind) -> Result<()> {
        let format = EventFormat::parse(format)?;
        let task = |name: &str, happened| {
            Result::Ok(Of::Task { task: format.field("pid")?, name: format.field(name)?, happened })
        };
        let of = match kind {
            Kind::Request(happened) | Kind::Bio(happened) => Of::Request {
                device: format.field("dev")?,
                sector: format.field("sector")?,
                sectors: format.field("nr_sector")?,
                letters: format.field("rwbs")?,
                happened,
            },
            Kind::Enter(call) => {
                Of::Enter { call, fd: format.field("fd").ok(), flags: format.field("flags").ok() }
            }
            Kind::Exit => Of::Exit { result: format.field("ret")? },
            Kind::SyncedOn => Of::SyncedOn { device: format.field("dev")? },
            Kind::Synced => Of::Synced { result: format.field("ret")? },
            Kind::WritebackFailed => Of::WritebackFailed {
                device: format.field("s_dev")?,
                inode: format.field("i_ino")?,
                error: format.field("errseq")?,
            },
            Kind::ErrorReported => Of::ErrorReported {
                device: format.field("s_dev")?,
                inode: format.field("i_ino")?,
                error: format.field("new")?,
            },
            Kind::TaskBegan => task("comm", EventContent::TaskBegan)?,
            Kind::TaskNamed => task("newcomm", EventContent::TaskNamed)?,
            Kind::TaskEnded => Of::TaskEnded,
        };
        let place = usize::from(format.id);
        self.by_id.resize_with(self.by_id.len().max(place + 1), || None);
        self.by_id[place] = Some(Fields { thread: format.field("common_pid")?, of });
        Ok(())
    }

    /// Decodes `record`; returns `None` for an event that was not learnt or is not relevant.
    pub fn decode(&self, record: Record<'_>) -> Option<Event> {
        let id = u16::from_ne_bytes(*record.data.first_chunk()?);
        let fields = self.by_id.get(usize::from(id))?.as_ref()?;
        let number = |field: &Field| field.number(record.data);
        let what = match &fields.of {
            Of::Request { device, sector, sectors, letters, happened } => {
                let letters = letters.bytes(record.data);
                let length = letters.iter().position(|byte| *byte == 0).unwrap_or(letters.len());
                let request = Request {
                    device: number(device) as u32,
                    sector: number(sector),
                    bytes: number(sectors).saturating_mul(SECTOR),
                    ..Request::default()
                };
                let request = request.with_letters(&letters[..length]);
                // A flush has no address, whatever the kernel reports.
                let sector = if request.op == Op::Flush { 0 } else { request.sector };
                happened(Request { sector, ..request })
            }
            Of::Enter { call: SyncCall::Msync, flags: Some(flags), .. } if number(flags) & MS_SYNC == 0 => {
                return None;
            }
            Of::Enter { call, fd, .. } => {
                EventContent::SyncBegan(*call, fd.as_ref().map(|fd| number(fd) as u32))
            }
            Of::Exit { result } => EventContent::SyncEnded(number(result) as i64 >= 0),
            Of::SyncedOn { device } => EventContent::SyncedOn(number(device) as u32),
            Of::Synced { result } => EventContent::Synced(number(result) as i32 >= 0),
            Of::WritebackFailed { device, inode, error } => {
                let inode = Inode { device: number(device) as u32, number: number(inode) };
                // The event holds the value from before: no error for a first failure, and for a failure
                // after a report the error that was reported. Another failure with the same error does not
                // change the value.
                let before = number(error);
                EventContent::WritebackFailed(inode, errno(before).filter(|_| before & ERRSEQ_SEEN == 0))
            }
            Of::ErrorReported { device, inode, error } => {
                let inode = Inode { device: number(device) as u32, number: number(inode) };
                EventContent::ErrorReported(inode, errno(number(error)))
            }
            Of::Task { task, name, happened } => {
                happened(number(task) as u32, *name.bytes(record.data).first_chunk()?)
            }
            Of::TaskEnded => EventContent::TaskEnded,
        };
        Some(Event { at: record.at, thread: number(&fields.thread) as u32, what })
    }
}

/// Returns the error in an `errseq_t`, if there is one.
fn errno(errseq: u64) -> Option<Errno> {
    Some(Errno((errseq & ERRSEQ_ERRNO) as i32)).filter(|errno| *errno != Errno(0))
}

/// Merges the events of several processors, each of which is in order.
#[derive(Debug, Default)]
pub struct MergedEvents {
    pending: Vec<Event>,
}

impl MergedEvents {
    /// Adds an event.
    pub fn add(&mut self, event: Event) {
        self.pending.push(event);
    }

    /// Takes the events before `time`, in order. No event before `time` may be added afterwards.
    pub(crate) fn take_before(&mut self, time: plumb_block::Nanos) -> impl Iterator<Item = Event> + '_ {
        // The sort is stable, and fast on input that consists of a few ordered runs.
        self.pending.sort_by_key(|event| event.at);
        let end = self.pending.partition_point(|event| event.at < time);
        self.pending.drain(..end)
    }
}

#[cfg(test)]
mod tests {
    use plumb_block::Nanos;

    use super::*;

    /// Format of the event in the kernel that the samples are of: 6.18.
    const ISSUE: &str = include_str!("../../linux/src/tracing/samples/block_rq_issue.format");

    fn record(parts: &[(usize, &[u8])]) -> Vec<u8> {
        let mut record = vec![0; 72];
        parts.iter().for_each(|(at, bytes)| record[*at..at + bytes.len()].copy_from_slice(bytes));
        record
    }

    #[test]
    fn a_record_is_decoded_by_its_format() {
        let mut decoder = Decoder::default();
        decoder.learn(ISSUE, Kind::Request(EventContent::Issued)).unwrap();
        let data = record(&[
            (0, &2104_u16.to_ne_bytes()),
            (4, &77_u32.to_ne_bytes()),
            (8, &(7_u32 << 20 | 3).to_ne_bytes()),
            (16, &2048_u64.to_ne_bytes()),
            (24, &8_u32.to_ne_bytes()),
            (34, b"WFS\0"),
        ]);
        let event = decoder.decode(Record { at: Nanos(5), data: &data }).unwrap();
        let request = Request {
            device: 7 << 20 | 3,
            sector: 2048,
            bytes: 4096,
            op: Op::Write,
            fua: true,
            preflush: false,
        };
        assert_eq!(event, Event { at: Nanos(5), thread: 77, what: EventContent::Issued(request) });
        assert_eq!(decoder.decode(Record { at: Nanos(5), data: &[1, 0] }), None, "another event");
        assert!(decoder.learn("name: x\nID: 4\n", Kind::Exit).is_err(), "a kernel without the field");
    }

    #[test]
    fn an_error_is_that_of_the_failure_and_not_the_one_before_it() {
        let format = |name: &str, id: u16, errseq: &str| {
            let field = |name: &str, offset| {
                format!("field:unsigned long {name}; offset:{offset}; size:8; signed:0;\n")
            };
            let common = "field:int common_pid; offset:4; size:4; signed:1;\n";
            let fields = [field("i_ino", 8), field("s_dev", 16), field(errseq, 24)].concat();
            format!("name: {name}\nID: {id}\n{common}{fields}")
        };
        let mut decoder = Decoder::default();
        decoder.learn(&format("filemap_set_wb_err", 5, "errseq"), Kind::WritebackFailed).unwrap();
        decoder.learn(&format("file_check_and_advance_wb_err", 6, "new"), Kind::ErrorReported).unwrap();
        let decoded = |id: u16, errseq: u64| {
            let data =
                record(&[(0, &id.to_ne_bytes()), (8, &12_u64.to_ne_bytes()), (24, &errseq.to_ne_bytes())]);
            match decoder.decode(Record { at: Nanos(1), data: &data }).unwrap().what {
                EventContent::WritebackFailed(_, error) | EventContent::ErrorReported(_, error) => error,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(decoded(5, 0), None, "the first failure of a file");
        assert_eq!(decoded(5, 5), Some(Errno::EIO), "one more");
        assert_eq!(decoded(5, 1 << 12 | 28), None, "the first after an ENOSPC that was told");
        assert_eq!(decoded(6, 1 << 13 | 1 << 12 | 5), Some(Errno::EIO));
    }

    #[test]
    fn an_msync_that_does_not_wait_is_none() {
        let format = "name: sys_enter_msync\nID: 9\nfield:int common_pid; offset:4; size:4; signed:1;\n\
                      field:int flags; offset:32; size:8; signed:0;";
        let mut decoder = Decoder::default();
        decoder.learn(format, Kind::Enter(SyncCall::Msync)).unwrap();
        let with = |flags: u64| record(&[(0, &9_u16.to_ne_bytes()), (32, &flags.to_ne_bytes())]);
        assert_eq!(decoder.decode(Record { at: Nanos(1), data: &with(1) }), None);
        let waits = decoder.decode(Record { at: Nanos(1), data: &with(4) }).unwrap();
        assert_eq!(waits.what, EventContent::SyncBegan(SyncCall::Msync, None));
    }

    #[test]
    fn events_of_processors_come_in_one_order_and_late_ones_wait() {
        let mut merged = MergedEvents::default();
        for at in [3, 9, 1, 5, 12] {
            merged.add(Event { at: Nanos(at), thread: 0, what: EventContent::SyncEnded(true) });
        }
        let times = |merged: &mut MergedEvents, time| {
            merged.take_before(Nanos(time)).map(|of| of.at.0).collect::<Vec<_>>()
        };
        assert_eq!(times(&mut merged, 9), [1, 3, 5]);
        assert_eq!(times(&mut merged, 20), [9, 12]);
    }
}
