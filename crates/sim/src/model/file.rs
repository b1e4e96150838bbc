//! Reading of a model from a user's file. The path may lead to anything: only regular files are read, reading
//! stops at the maximum length of a model, and opening never blocks.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;

use plumb_block::Bytes;
use rustix::fs::OFlags;

use super::error::ModelError;

/// Maximum length of a model; shipped ones have about 4 KiB.
pub(super) const TEXT_MAX: Bytes = Bytes::mib(1);

/// Returns the text of the file at `path`.
pub(super) fn text_of(path: &Path) -> Result<String, ModelError> {
    let read_failed = |source: io::Error| ModelError::Read { path: path.to_owned(), source };
    let file = open(path).map_err(read_failed)?;
    let about = file.metadata().map_err(read_failed)?;
    if !about.is_file() {
        return Err(ModelError::NotAFile { path: path.to_owned(), found: name_of(about.file_type()) });
    }
    // The length is checked only to avoid reading a long file; a file may grow, and some report a length of
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

/// Opens the file without blocking on a pipe and without acquiring a controlling terminal.
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
