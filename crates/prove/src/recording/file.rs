//! A recording in a file, to be kept, sent, and explored elsewhere.
//!
//! The first line is a JSON object: `schema`, `size` and `logical_block` in bytes, and how many `commands`, `events` and
//! `contents` follow. Then one line of JSON for each command, one for each event, the bytes of the contents, and the
//! SHA-256 of all that.

use std::io::{self, BufRead, Write};

use plumb_block::{Bytes, LbaRange, Nanos, Op};
use ring::digest::{Context, Digest, SHA256, SHA256_OUTPUT_LEN};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{Command, Content, Contents, Event, Recording};

const SCHEMA: &str = "plumb/recording/1";

/// Why a file is no recording.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It could not be read or written.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is none, or of another version.
    #[error(
        "line {line} is not that of a recording ({why}); expected a file that `plumb prove app --keep` wrote"
    )]
    Malformed {
        /// Which line, from 1.
        line: usize,
        /// What is wrong.
        why: String,
    },
    /// It is not as it was written.
    #[error("the recording is damaged: its checksum does not match; take it again, or send it again")]
    Damaged,
}

#[derive(Serialize, Deserialize)]
struct Head {
    schema: String,
    size: Bytes,
    logical_block: Bytes,
    commands: usize,
    events: usize,
    contents: usize,
}

#[derive(Serialize, Deserialize)]
struct CommandLine {
    op: Op,
    range: LbaRange,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    contents: Vec<u32>,
}

/// Hashes what passes.
struct Hashed<T> {
    inner: T,
    context: Context,
    line: usize,
}

impl<W: Write> Write for Hashed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.context.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<R: BufRead> Hashed<R> {
    fn line<T: DeserializeOwned>(&mut self) -> Result<T, FileError> {
        self.line += 1;
        let mut line = Vec::new();
        self.inner.read_until(b'\n', &mut line)?;
        self.context.update(&line);
        serde_json::from_slice(&line)
            .map_err(|error| FileError::Malformed { line: self.line, why: error.to_string() })
    }

    fn malformed(&self, why: &str) -> FileError {
        FileError::Malformed { line: self.line, why: why.to_owned() }
    }
}

impl Recording {
    /// Writes all of it.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn save(&self, out: impl Write) -> Result<(), FileError> {
        self.write(out).map(drop)
    }

    /// What tells it from every other recording: the checksum of its file, in hexadecimal digits.
    pub fn digest(&self) -> String {
        let digest = self.write(io::sink());
        digest.map_or_else(
            |_| String::new(),
            |digest| digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect(),
        )
    }

    fn write(&self, out: impl Write) -> Result<Digest, FileError> {
        let mut out = Hashed { inner: out, context: Context::new(&SHA256), line: 0 };
        let head = Head {
            schema: SCHEMA.to_owned(),
            size: self.size,
            logical_block: self.logical_block,
            commands: self.commands.len(),
            events: self.events.len(),
            contents: self.contents.len() - 1,
        };
        write_line(&mut out, &head)?;
        for command in &self.commands {
            let contents = command.contents.iter().map(|content| content.0).collect();
            write_line(&mut out, &CommandLine { op: command.op, range: command.range, contents })?;
        }
        for event in &self.events {
            write_line(&mut out, event)?;
        }
        out.write_all(self.contents.all_bytes())?;
        let digest = out.context.finish();
        out.inner.write_all(digest.as_ref())?;
        out.inner.flush()?;
        Ok(digest)
    }

    /// Reads what [`save`](Self::save) wrote.
    ///
    /// # Errors
    /// If `from` cannot be read, or holds something else, less or more.
    pub fn load(from: impl BufRead) -> Result<Self, FileError> {
        let mut from = Hashed { inner: from, context: Context::new(&SHA256), line: 0 };
        let head: Head = from.line()?;
        if head.schema != SCHEMA {
            return Err(from.malformed(&format!("schema {:?}, expected {SCHEMA:?}", head.schema)));
        }
        if !head.logical_block.0.is_power_of_two() || !(512..=65_536).contains(&head.logical_block.0) {
            return Err(from.malformed("logical_block is not a power of two from 512 to 65536"));
        }
        let mut recording = Self::of_blank(head.size, head.logical_block);
        for _ in 0..head.commands {
            let CommandLine { op, range, contents } = from.line()?;
            let is_within = range.lba.0.checked_add(range.nlb).is_some_and(|end| end <= recording.blocks());
            let is_data = matches!(op, Op::Write { .. });
            let has_all = contents.len() as u64 == if is_data { range.nlb } else { 0 };
            if !is_within || !has_all || contents.iter().any(|content| *content as usize > head.contents) {
                return Err(from.malformed("a command outside the device, or without its contents"));
            }
            let contents = contents.into_iter().map(Content).collect();
            recording.commands.push(Command { op, range, contents });
        }
        for _ in 0..head.events {
            let event: (Nanos, Event) = from.line()?;
            if recording.command_of(&event.1).is_some_and(|id| id.0 as usize >= recording.commands.len()) {
                return Err(from.malformed("an event of a command that is not there"));
            }
            recording.events.push(event);
        }
        recording.contents = read_contents(&mut from, head.logical_block, head.contents)?;
        let mut stored = [0; SHA256_OUTPUT_LEN];
        from.inner.read_exact(&mut stored)?;
        if from.context.finish().as_ref() != stored {
            return Err(FileError::Damaged);
        }
        Ok(recording)
    }

    /// Capacity in logical blocks.
    pub fn blocks(&self) -> u64 {
        self.size.0 / self.logical_block.0
    }

    const fn command_of(&self, event: &Event) -> Option<super::CommandId> {
        match event {
            Event::Submitted(id) | Event::Completed(id) | Event::Failed(id) => Some(*id),
            Event::Acknowledged(_) | Event::Marked(_) => None,
        }
    }
}

fn write_line(out: &mut impl Write, value: &impl Serialize) -> Result<(), FileError> {
    serde_json::to_writer(&mut *out, value).map_err(io::Error::from)?;
    Ok(out.write_all(b"\n")?)
}

fn read_contents<R: BufRead>(
    from: &mut Hashed<R>,
    block: Bytes,
    count: usize,
) -> Result<Contents, FileError> {
    let mut contents = Contents::new(block);
    let mut bytes = vec![0; block.0 as usize];
    for number in 1..=count {
        from.inner.read_exact(&mut bytes)?;
        from.context.update(&bytes);
        if contents.number(&bytes) != Content(number as u32) {
            return Err(from.malformed("a content that is there twice"));
        }
    }
    Ok(contents)
}
