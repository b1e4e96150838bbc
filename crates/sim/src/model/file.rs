//! The text of a model that a user keeps in a file. The path is whatever was typed, so it may lead to
//! anything: what is not a regular file is not read, what is longer than a model ever is is not read to its
//! end, and opening waits for nobody.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;

use plumb_block::Bytes;
use rustix::fs::OFlags;

use super::error::ModelError;

/// The longest text of a model; those that ship have 4 KiB.
pub(super) const TEXT_MAX: Bytes = Bytes::mib(1);

/// Returns the text of the file at `path`.
pub(super) fn text_of(path: &Path) -> Result<String, ModelError> {
    let read_failed = |source: io::Error| ModelError::Read { path: path.to_owned(), source };
    let file = open(path).map_err(read_failed)?;
    let about = file.metadata().map_err(read_failed)?;
    if !about.is_file() {
        return Err(ModelError::NotAFile { path: path.to_owned(), found: name_of(about.file_type()) });
    }
    // The length is checked only to avoid reading a long file: a file may grow, and some report a length of
    // zero.
    let mut text = Vec::new();
    if about.len() <= TEXT_MAX.0 {
        file.take(TEXT_MAX.0 + 1).read_to_end(&mut text).map_err(read_failed)?;
    }
    if about.len().max(text.len() as u64) > TEXT_MAX.0 {
        return Err(ModelError::TooLong { path: path.to_owned(), most: TEXT_MAX });
    }
    String::from_utf8(text).map_err(|error| {
        let sound = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + sound.iter().filter(|byte| **byte == b'\n').count();
        read_failed(io::Error::new(io::ErrorKind::InvalidData, format!("line {line} is not UTF-8")))
    })
}

/// Opens the file without waiting for a writer at the other end of a pipe, and without a terminal becoming
/// ours.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path)
}

fn name_of(kind: std::fs::FileType) -> &'static str {
    match kind {
        _ if kind.is_dir() => "a directory",
        _ if kind.is_fifo() => "a pipe",
        _ if kind.is_socket() => "a socket",
        _ if kind.is_char_device() => "a character device",
        _ if kind.is_block_device() => "a block device",
        _ => "something else",
    }
}
