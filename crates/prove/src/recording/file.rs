//! Recording in a file, to be stored, sent, and explored elsewhere.
//!
//! The first line is a JSON object: `schema`, `size` and `logical_block` in bytes, `further_drives`, and the
//! numbers of `commands`, `events` and `contents` that follow. Then one line of JSON for each command, one
//! for each event, the bytes of the contents, and the SHA-256 of all that.

use std::io::{self, Read, Write};

use plumb_block::{Bytes, Nanos, Op};
use ring::digest::{Context, Digest, SHA256, SHA256_OUTPUT_LEN, digest};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{Command, Content, Event, Recording};
use crate::error::{Error, Result, cannot};

const SCHEMA: &str = "plumb/recording/1";

#[derive(Serialize, Deserialize)]
struct Head {
    schema: String,
    size: Bytes,
    logical_block: Bytes,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    further_drives: Vec<u64>,
    commands: usize,
    events: usize,
    contents: usize,
}

/// Writer that hashes everything written.
struct HashingWriter<W> {
    inner: W,
    context: Context,
}

impl<W: Write> Write for HashingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.context.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Rest of a file, and the number of lines read.
struct Lines<'a> {
    rest: &'a [u8],
    line: usize,
}

impl Lines<'_> {
    fn next<T: DeserializeOwned>(&mut self) -> Result<T> {
        let length = self.rest.iter().position(|byte| *byte == b'\n').map_or(self.rest.len(), |end| end + 1);
        let (line, rest) = self.rest.split_at(length);
        (self.rest, self.line) = (rest, self.line + 1);
        serde_json::from_slice(line).map_err(|error| self.malformed(&error.to_string()))
    }

    fn malformed(&self, why: &str) -> Error {
        let expected = "expected a file that `plumb prove app --keep` wrote";
        Error::usage(format!("line {} is not that of a recording ({why}); {expected}", self.line))
    }
}

impl Recording {
    /// Writes the recording.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn save(&self, out: impl Write) -> Result<()> {
        self.write(out).map(drop).map_err(cannot("write the recording"))
    }

    /// Returns the identifier of the recording: the checksum of its file, in hexadecimal digits.
    pub fn digest(&self) -> String {
        let digest = self.write(io::sink());
        digest.map_or_else(|_| String::new(), |digest| plumb_state::hex::encode(digest.as_ref()))
    }

    fn write(&self, out: impl Write) -> io::Result<Digest> {
        let mut out = HashingWriter { inner: out, context: Context::new(&SHA256) };
        let head = Head {
            schema: SCHEMA.to_owned(),
            size: self.size,
            logical_block: self.logical_block,
            further_drives: self.further_drives.clone(),
            commands: self.commands.len(),
            events: self.events.len(),
            contents: self.contents.len() - 1,
        };
        write_line(&mut out, &head)?;
        self.commands.iter().try_for_each(|command| write_line(&mut out, command))?;
        self.events.iter().try_for_each(|event| write_line(&mut out, event))?;
        out.write_all(self.contents.all_bytes())?;
        let digest = out.context.finish();
        out.inner.write_all(digest.as_ref())?;
        out.inner.flush()?;
        Ok(digest)
    }

    /// Reads a recording that [`save`](Self::save) wrote.
    ///
    /// # Errors
    /// If `from` cannot be read, or holds anything else.
    pub fn load(mut from: impl Read) -> Result<Self> {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes).map_err(cannot("read the recording"))?;
        let mut lines = Lines { rest: &bytes, line: 0 };
        let head: Head = lines.next()?;
        if head.schema != SCHEMA {
            return Err(lines.malformed(&format!("schema {:?}, expected {SCHEMA:?}", head.schema)));
        }
        if !head.logical_block.0.is_power_of_two() || !(512..=65_536).contains(&head.logical_block.0) {
            return Err(lines.malformed("logical_block is not a power of two from 512 to 65536"));
        }
        let sum = bytes.len().saturating_sub(SHA256_OUTPUT_LEN);
        if digest(&SHA256, &bytes[..sum]).as_ref() != &bytes[sum..] {
            let what =
                "the recording is damaged: its checksum does not match; record it again, or send it again";
            return Err(Error::usage(what));
        }
        let mut recording = Self::of_blank(head.size, head.logical_block);
        recording.further_drives = head.further_drives;
        for _ in 0..head.commands {
            let command: Command = lines.next()?;
            let Command { op, range, contents, group, needs } = &command;
            let is_within = range.lba.0.checked_add(range.nlb).is_some_and(|end| end <= recording.blocks());
            let blocks = if matches!(op, Op::Write { .. }) { range.nlb } else { 0 };
            let is_known = contents.iter().all(|content| content.0 as usize <= head.contents);
            let number = recording.commands.len() as u32;
            let are_earlier = group.iter().chain(needs).all(|other| other.0 <= number);
            if !is_within || contents.len() as u64 != blocks || !is_known || !are_earlier {
                return Err(lines.malformed("a command outside the device, or without its contents"));
            }
            recording.commands.push(command);
        }
        for _ in 0..head.events {
            let event: (Nanos, Event) = lines.next()?;
            if recording.command_of(&event.1).is_some_and(|id| id.0 as usize >= recording.commands.len()) {
                return Err(lines.malformed("an event of a command that is not there"));
            }
            recording.events.push(event);
        }
        let rest = lines.rest.strip_suffix(&bytes[sum..]).unwrap_or_default();
        for (number, block) in (1..).zip(rest.chunks(head.logical_block.0 as usize)) {
            if block.len() as u64 != head.logical_block.0
                || recording.contents.number(block) != Content(number)
            {
                return Err(lines.malformed("a content that is there twice, or in part"));
            }
        }
        if recording.contents.len() - 1 != head.contents {
            return Err(lines.malformed("another number of contents than there should be"));
        }
        Ok(recording)
    }

    /// Returns the capacity in logical blocks.
    pub fn blocks(&self) -> u64 {
        self.size.0 / self.logical_block.0
    }

    const fn command_of(&self, event: &Event) -> Option<super::CommandId> {
        match event {
            Event::Submitted(id) | Event::Completed(id) | Event::Failed(id) | Event::Persisted(id) => {
                Some(*id)
            }
            Event::Acknowledged(_) | Event::Marked(_) => None,
        }
    }
}

fn write_line(out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    out.write_all(b"\n")
}
