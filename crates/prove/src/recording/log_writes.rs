//! Logs of the kernel's dm-log-writes target (drivers/md/dm-log-writes.c), read as recordings and written
//! from them.
//!
//! ```text
//!   block 0          magic, version, number of entries (u64), size of a block (u32), all little-endian
//!   for each entry   a block with first block, number of blocks, flags, length of a mark (u64), and the mark
//!                    the data of a write, in blocks
//! ```
//! The kernel logs a write when a flush after it has completed, or on completion if it had FUA. A mark is
//! logged at once. So the position of an entry tells when it became durable, and the log does not show which
//! requests were in flight together.

use std::io::{self, ErrorKind, Read, Write};

use plumb_block::{Bytes, Lba, LbaRange, Nanos, Op};

use super::{Command, CommandId, Event, Recording};
use crate::error::{Error, Result, cannot};

const MAGIC: u64 = 0x6a_7366_7773_6872;
const VERSION: u64 = 1;
const FLUSH: u64 = 1;
const FUA: u64 = 1 << 1;
const DISCARD: u64 = 1 << 2;
const MARK: u64 = 1 << 3;
const METADATA: u64 = 1 << 4;
/// Length of the header before a mark in its block.
const ENTRY: usize = 32;
/// Maximum number of blocks of zeroes or data read or written at once.
const BLOCKS_MAX: usize = 256;
/// Final mark of a log.
const END: &str = "dm-log-writes-end";
/// Marks that begin the work: of xfstests, and of plumb.
const BEGINNINGS: [&str; 2] = ["mkfs", "the work begins"];

/// Recording read from a log.
pub(crate) struct LogContents {
    pub(crate) recording: Recording,
    /// Event at which the work begins.
    pub(crate) from: usize,
}

/// Entry of a log, without the data of a write.
#[derive(Clone, Copy)]
struct Entry {
    range: LbaRange,
    flags: u64,
    mark_length: u64,
}

impl Entry {
    fn parse(bytes: &[u8]) -> Self {
        let word = |place: usize| number(&bytes[8 * place..8 * place + 8]);
        let range = LbaRange::new(Lba(word(0)), word(1));
        Self { range, flags: word(2), mark_length: word(3) }
    }

    const fn has(self, flag: u64) -> bool {
        self.flags & flag != 0
    }

    /// Returns the problem of the entry in a log with blocks of this size, if there is one.
    fn problem(self, block: usize) -> Option<&'static str> {
        let Self { range, flags, mark_length } = self;
        let is_empty = range.nlb == 0;
        if flags & !(FLUSH | FUA | DISCARD | MARK | METADATA) != 0 {
            Some("its flags are unknown")
        } else if is_empty && flags & (FLUSH | MARK) == 0 {
            Some("it holds nothing")
        } else if self.has(MARK) && (!is_empty || mark_length > (block - ENTRY) as u64) {
            Some("its mark does not fit into a block")
        } else if !self.has(MARK) && mark_length != 0 {
            Some("it has data of another kind, as of DAX, which plumb does not read")
        } else if range.lba.0.checked_add(range.nlb).is_none_or(|end| end > u64::MAX / block as u64) {
            Some("it is beyond the end of every device")
        } else {
            None
        }
    }
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

impl Recording {
    /// Reads a log. The device was blank before, or held `base`, which is as long as the device.
    ///
    /// # Errors
    /// If `log` is damaged or not a log, or something cannot be read.
    pub(crate) fn from_log_writes(mut log: impl Read, base: Option<&mut dyn Read>) -> Result<LogContents> {
        let mut head = [0; 28];
        log.read_exact(&mut head).map_err(|error| cut_off(&error, "its first block"))?;
        let (entries, block) = (number(&head[16..24]), number(&head[24..]) as usize);
        if (number(&head[..8]), number(&head[8..16])) != (MAGIC, VERSION) {
            let what = "it does not begin as version 1 of a log does";
            return Err(damaged(what));
        }
        if !block.is_power_of_two() || !(512..=65_536).contains(&block) {
            return Err(damaged(&format!(
                "its blocks have {block} bytes: expected a power of two from 512 to 65536"
            )));
        }
        skip(&mut log, block - head.len()).map_err(|error| cut_off(&error, "its first block"))?;
        let mut recording = Self::of_blank(Bytes(0), Bytes(block as u64));
        if let Some(base) = base {
            recording.begin_with(base, block)?;
        }
        let device = recording.size;
        let mut from = None;
        for place in 0..entries {
            let which = format!("entry {} of {entries}", place + 1);
            let mut bytes = vec![0; block];
            log.read_exact(&mut bytes).map_err(|error| cut_off(&error, &which))?;
            let entry = Entry::parse(&bytes);
            if let Some(problem) = entry.problem(block) {
                return Err(damaged(&format!("{which}: {problem}")));
            }
            let at = Nanos::micros(place + 1);
            if entry.has(MARK) {
                let mark = &bytes[ENTRY..ENTRY + entry.mark_length as usize];
                let mark = String::from_utf8_lossy(mark).trim_end_matches('\0').to_owned();
                recording.marked(at, &mark).map_err(|why| damaged(&format!("{which}: {why}")))?;
                if BEGINNINGS.contains(&mark.as_str()) {
                    from.get_or_insert(recording.events.len());
                }
                continue;
            }
            let end = Bytes(entry.range.end().0 * block as u64);
            if device != Bytes(0) && end > device {
                return Err(damaged(&format!("{which} ends at {end}, and the base has {device}")));
            }
            recording.size = recording.size.max(end);
            let has_data = entry.range.nlb > 0 && !entry.has(DISCARD);
            let length = if has_data { entry.range.nlb * block as u64 } else { 0 };
            let mut data = Vec::new();
            log.by_ref().take(length).read_to_end(&mut data).map_err(cannot("read the log"))?;
            if data.len() as u64 != length {
                return Err(cut_off(&ErrorKind::UnexpectedEof.into(), &which));
            }
            recording.logged(at, entry, &data);
        }
        Ok(LogContents { from: from.unwrap_or(0), recording })
    }

    /// Records that the device held `base` from the beginning.
    fn begin_with(&mut self, base: &mut dyn Read, block: usize) -> Result<()> {
        let mut chunk = Vec::new();
        loop {
            chunk.clear();
            let read = base.take((block * BLOCKS_MAX) as u64).read_to_end(&mut chunk);
            read.map_err(cannot("read the base"))?;
            if chunk.len() % block != 0 {
                return Err(Error::usage(format!("the base does not end with a block of {block} bytes")));
            }
            if chunk.is_empty() {
                break;
            }
            let lba = self.size.0 / block as u64;
            let range = LbaRange::new(Lba(lba), (chunk.len() / block) as u64);
            self.size = Bytes(self.size.0 + chunk.len() as u64);
            if chunk.iter().any(|byte| *byte != 0) {
                self.done(Nanos(0), Op::Write { fua: false }, range, &chunk);
            }
        }
        self.done(Nanos(0), Op::Flush, LbaRange::EMPTY, &[]);
        Ok(())
    }

    /// Records a mark. A number acknowledges.
    fn marked(&mut self, at: Nanos, mark: &str) -> std::result::Result<(), String> {
        let Ok(number) = mark.trim().parse::<u64>() else {
            self.happened(at, Event::Marked(mark.to_owned()));
            return Ok(());
        };
        let last = self.events.iter().rev().find_map(|(_, event)| match event {
            Event::Acknowledged(last) => Some(*last),
            _ => None,
        });
        if let Some(last) = last.filter(|last| number <= *last) {
            return Err(format!("{number} was acknowledged after {last}: the numbers must rise"));
        }
        self.happened(at, Event::Acknowledged(number));
        Ok(())
    }

    /// Records an entry.
    fn logged(&mut self, at: Nanos, entry: Entry, data: &[u8]) {
        if entry.has(FLUSH) {
            self.done(at, Op::Flush, LbaRange::EMPTY, &[]);
        }
        if entry.range.nlb > 0 {
            let write = Op::Write { fua: entry.has(FUA) };
            self.done(at, if entry.has(DISCARD) { Op::Discard } else { write }, entry.range, data);
        }
    }

    fn done(&mut self, at: Nanos, op: Op, range: LbaRange, bytes: &[u8]) {
        let id = self.submit(at, op, range, bytes);
        self.happened(at, Event::Completed(id));
    }

    /// Writes the first `until` events of the recording of a drive as a log: all completed commands in the
    /// order of completion, except that a write which completed while a flush was in flight follows that
    /// flush. The kernel writes logs in the same way, except that it lets FUA overtake.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn save_log_writes(&self, until: usize, mut out: impl Write) -> Result<()> {
        self.write_log(&self.log_items(until), &mut out).map_err(cannot("write the log"))
    }

    /// Returns the items of a log of the first `until` events, in order.
    fn log_items(&self, until: usize) -> Vec<LogItem> {
        let mut items = Vec::new();
        let mut flushes: Vec<CommandId> = Vec::new();
        // Writes, each with the flushes that it must follow.
        let mut deferred: Vec<(CommandId, Vec<CommandId>)> = Vec::new();
        for (_, event) in self.events.iter().take(until) {
            let command = |id: CommandId| &self.commands[id.0 as usize];
            let is_flush = |id: CommandId| command(id).op == Op::Flush;
            match *event {
                Event::Submitted(id) if is_flush(id) => flushes.push(id),
                Event::Completed(id) | Event::Failed(id) if is_flush(id) => {
                    let is_done = matches!(event, Event::Completed(_));
                    items.extend(is_done.then_some(LogItem::Command(id)));
                    flushes.retain(|flush| *flush != id);
                    deferred.iter_mut().for_each(|(_, behind)| behind.retain(|flush| *flush != id));
                    let due = deferred.extract_if(.., |(_, behind)| behind.is_empty());
                    items.extend(due.map(|(id, _)| LogItem::Command(id)));
                }
                Event::Completed(id) if flushes.is_empty() || command(id).op.is_fua() => {
                    // An older version of a block must not follow a newer one.
                    let range = command(id).range;
                    let older = deferred.extract_if(.., |(id, _)| command(*id).range.overlaps(range));
                    items.extend(older.map(|(id, _)| LogItem::Command(id)));
                    items.push(LogItem::Command(id));
                }
                Event::Completed(id) => deferred.push((id, flushes.clone())),
                Event::Acknowledged(number) => items.push(LogItem::Mark(number.to_string())),
                Event::Marked(ref mark) => items.push(LogItem::Mark(mark.clone())),
                Event::Submitted(_) | Event::Failed(_) | Event::Persisted(_) => {}
            }
        }
        items.extend(deferred.into_iter().map(|(id, _)| LogItem::Command(id)));
        items.push(LogItem::Mark(END.to_owned()));
        items
    }

    fn write_log(&self, items: &[LogItem], out: &mut impl Write) -> io::Result<()> {
        let block = self.logical_block.0 as usize;
        let padded = |mut bytes: Vec<u8>| {
            bytes.resize(block, 0);
            bytes
        };
        let words = |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
        out.write_all(&padded(words(&[MAGIC, VERSION, items.len() as u64, block as u64])))?;
        for item in items {
            match item {
                LogItem::Mark(mark) => {
                    let mark = &mark.as_bytes()[..mark.len().min(block - ENTRY)];
                    out.write_all(&padded(
                        [words(&[0, 0, MARK, mark.len() as u64]), mark.to_vec()].concat(),
                    ))?;
                }
                LogItem::Command(id) => {
                    let command = &self.commands[id.0 as usize];
                    let Command { op, range, contents, .. } = command;
                    let flags = match op {
                        Op::Flush => FLUSH,
                        Op::Discard => DISCARD,
                        _ if op.is_fua() => FUA,
                        _ => 0,
                    };
                    let range = if *op == Op::Flush { LbaRange::EMPTY } else { *range };
                    out.write_all(&padded(words(&[range.lba.0, range.nlb, flags, 0])))?;
                    contents.iter().try_for_each(|content| out.write_all(self.contents.bytes(*content)))?;
                    if matches!(op, Op::WriteZeroes { .. }) {
                        io::copy(&mut io::repeat(0).take(range.nlb * block as u64), out)?;
                    }
                }
            }
        }
        out.flush()
    }
}

/// Item of a log to write.
enum LogItem {
    Command(CommandId),
    Mark(String),
}

fn skip(from: &mut impl Read, bytes: usize) -> io::Result<()> {
    let skipped = io::copy(&mut from.take(bytes as u64), &mut io::sink())?;
    if skipped == bytes as u64 { Ok(()) } else { Err(ErrorKind::UnexpectedEof.into()) }
}

/// Returns the error for a part of a log that cannot be read.
fn cut_off(error: &io::Error, what: &str) -> Error {
    match error.kind() {
        ErrorKind::UnexpectedEof => damaged(&format!("it ends in {what}")),
        _ => Error::failed("reading the log", error),
    }
}

/// Returns the error for a file that is not a complete log.
fn damaged(why: &str) -> Error {
    Error::usage(format!(
        "it is not a log of dm-log-writes, or it is damaged ({why}): expected the whole log device, from its first block, \
         after the target was removed (`dmsetup remove`)"
    ))
}
