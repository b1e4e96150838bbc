//! Reports of a guest to its host, as a stream of frames on a virtio serial port.
//!
//! A frame is a line `@@KIND ARGUMENTS`; a blob is followed by as many raw bytes as its line says:
//! ```text
//! @@hello RELEASE         the kernel runs, its drives are there
//! @@begin SCENARIO        what follows is about this scenario
//! @@disk NAME NODE        the kernel calls the drive NAME by NODE
//! @@sync LABEL            the guest waits until the host has answered "go": the host samples its counters here
//! @@count DISK            the guest waits for the line "FLUSHES WRITES on|off": what that drive has received, its cache
//! @@unplug DISK           the guest waits until the host has answered "go": it was asked to give that drive up
//! @@cut DISK WHEN         the guest waits until the host has answered "go": that simulated drive loses its power then, in words of
//!                         `plumb drive cut`, and what was acknowledged on it before counts no longer
//! @@ack DISK NUMBER       a program promises that something is durable on that drive
//! @@acked DISK            the guest waits for the line "NUMBER": the last such promise
//! @@note TEXT             something was checked; TEXT begins with "ok", "FAIL" or "info"
//! @@power-cycle LIFE      the host ends this QEMU and starts another with the same drives, which goes on with LIFE
//! @@blob LABEL SIZE       SIZE bytes follow
//! @@skip REASON           this scenario cannot run on this kernel
//! @@fail REASON           this scenario broke
//! @@end STATUS            the scenario's script ended
//! @@bye                   nothing more comes
//! ```
//! The kernel's console is not mixed in, so there is nothing to filter: any other line is an error.

use std::io::{BufRead, Read};

use anyhow::{Context, Result, bail, ensure};

/// Message of the guest.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    Hello { release: String },
    Begin { scenario: String },
    Disk { name: String, node: String },
    Sync { label: String },
    Count { disk: String },
    Unplug { disk: String },
    Cut { disk: String, when: String },
    Ack { disk: String, number: u64 },
    Acked { disk: String },
    Note { text: String },
    PowerCycle { life: u32 },
    Blob { label: String, content: Vec<u8> },
    Skip { reason: String },
    Fail { reason: String },
    End { status: i32 },
    Bye,
}

/// Maximum length of a blob.
const BLOB_BYTES_MAX: u64 = 256 << 20;

/// Reads the next frame; `None` at the end of the stream.
///
/// # Errors
/// Those of the reader, and an invalid line.
pub(crate) fn read_frame(from: &mut impl BufRead) -> Result<Option<Frame>> {
    let mut line = Vec::new();
    if from.read_until(b'\n', &mut line).context("reading from the guest")? == 0 {
        return Ok(None);
    }
    let line = String::from_utf8_lossy(line.trim_ascii_end()).into_owned();
    let Some(text) = line.strip_prefix("@@") else {
        bail!("the guest sent a line that is not a frame: {line:?}")
    };
    let (kind, rest) = text.split_once(' ').unwrap_or((text, ""));
    let bad = || format!("the guest sent a frame that cannot be read: {line:?}");
    let frame = match kind {
        "hello" => Frame::Hello { release: rest.to_owned() },
        "begin" => Frame::Begin { scenario: rest.to_owned() },
        "disk" => {
            let (name, node) = rest.split_once(' ').with_context(bad)?;
            Frame::Disk { name: name.to_owned(), node: node.to_owned() }
        }
        "sync" => Frame::Sync { label: rest.to_owned() },
        "count" => Frame::Count { disk: rest.to_owned() },
        "unplug" => Frame::Unplug { disk: rest.to_owned() },
        "cut" => {
            let (disk, when) = rest.split_once(' ').with_context(bad)?;
            Frame::Cut { disk: disk.to_owned(), when: when.to_owned() }
        }
        "ack" => {
            let (disk, number) = rest.split_once(' ').with_context(bad)?;
            Frame::Ack { disk: disk.to_owned(), number: number.parse().with_context(bad)? }
        }
        "acked" => Frame::Acked { disk: rest.to_owned() },
        "note" => Frame::Note { text: rest.to_owned() },
        "power-cycle" => Frame::PowerCycle { life: rest.parse().with_context(bad)? },
        "blob" => {
            let (label, size) = rest.split_once(' ').with_context(bad)?;
            let content = read_blob(from, size.trim().parse().with_context(bad)?)?;
            Frame::Blob { label: label.to_owned(), content }
        }
        "skip" => Frame::Skip { reason: rest.to_owned() },
        "fail" => Frame::Fail { reason: rest.to_owned() },
        "end" => Frame::End { status: rest.parse().with_context(bad)? },
        "bye" => Frame::Bye,
        _ => bail!(bad()),
    };
    Ok(Some(frame))
}

fn read_blob(from: &mut impl BufRead, size: u64) -> Result<Vec<u8>> {
    ensure!(size <= BLOB_BYTES_MAX, "the guest announced a blob of {size} bytes");
    let mut content = Vec::new();
    let read = from.take(size).read_to_end(&mut content).context("reading a blob from the guest")?;
    ensure!(u64::try_from(read)? == size, "the guest's stream ended {read} bytes into a blob of {size}");
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(mut stream: &[u8]) -> Result<Vec<Frame>> {
        std::iter::from_fn(|| read_frame(&mut stream).transpose()).collect()
    }

    #[test]
    fn a_blob_may_hold_anything() {
        let stream = b"@@begin x\n@@disk a sda\n@@blob tree 9\n@@bye\n\0\xffx@@sync before\n@@end 0\n@@bye\n";
        let expected = [
            Frame::Begin { scenario: "x".to_owned() },
            Frame::Disk { name: "a".to_owned(), node: "sda".to_owned() },
            Frame::Blob { label: "tree".to_owned(), content: b"@@bye\n\0\xffx".to_vec() },
            Frame::Sync { label: "before".to_owned() },
            Frame::End { status: 0 },
            Frame::Bye,
        ];
        assert_eq!(frames(stream).unwrap(), expected);
    }

    #[test]
    fn a_guest_that_checks_by_itself_asks_and_tells() {
        let stream =
            b"@@count a\n@@unplug b\n@@note ok it is so\n@@power-cycle 2\n@@cut a --at-flush 3\n@@ack a 7\n";
        let expected = [
            Frame::Count { disk: "a".to_owned() },
            Frame::Unplug { disk: "b".to_owned() },
            Frame::Note { text: "ok it is so".to_owned() },
            Frame::PowerCycle { life: 2 },
            Frame::Cut { disk: "a".to_owned(), when: "--at-flush 3".to_owned() },
            Frame::Ack { disk: "a".to_owned(), number: 7 },
        ];
        assert_eq!(frames(stream).unwrap(), expected);
        assert!(frames(b"@@power-cycle soon\n").is_err());
    }

    #[test]
    fn noise_and_short_blobs_are_errors() {
        assert!(frames(b"hello\n").is_err());
        assert!(frames(b"@@blob tree 9\n123").is_err());
        assert!(frames(b"@@blob tree 99999999999\n").is_err());
        assert!(frames(b"@@what\n").is_err());
    }
}
