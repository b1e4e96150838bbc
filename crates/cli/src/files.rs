//! Files named on the command line: text files (job files, profiles, parameter files, TOML), and output
//! files, which `plumb_state` writes.
//!
//! Text files are small and may come from any system: a file larger than [`LARGEST`] is refused, and UTF-16
//! with a byte order mark, as PowerShell writes it, is accepted beside UTF-8.

use std::fs::File;
use std::io::{self, Read};

use plumb_state::OutputFile;

use crate::terminal;

/// Size limit of text files in bytes, because a device in place of a file may be endless.
const LARGEST: u64 = 16 << 20;

/// Returns the text of the file at `path`.
///
/// # Errors
/// If the file cannot be read, is too large, or is not text.
pub(crate) fn read(path: &str) -> io::Result<String> {
    text_of(File::open(path)?)
}

/// Returns the text of the file at `path`, or of standard input if it is `-`.
///
/// # Errors
/// The errors of [`read`].
pub(crate) fn read_or_stdin(path: &str) -> io::Result<String> {
    if path == "-" { text_of(io::stdin()) } else { read(path) }
}

fn text_of(file: impl Read) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST {
        let message = format!("it is larger than {} MiB, too large for such a file", LARGEST >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    let text = match bytes.as_slice() {
        [0xff, 0xfe, rest @ ..] => utf16(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => utf16(rest, u16::from_be_bytes),
        [0xef, 0xbb, 0xbf, rest @ ..] => std::str::from_utf8(rest).ok().map(str::to_owned),
        _ => String::from_utf8(bytes).ok(),
    };
    text.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "it is not text in UTF-8 or UTF-16"))
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Option<String> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let units: Vec<u16> = pairs.iter().map(|pair| unit(*pair)).collect();
    String::from_utf16(&units).ok().filter(|_| rest.is_empty())
}

/// Writes `text` to the output file, or to stdout if there is none.
///
/// # Errors
/// The errors of [`OutputFile::write`], and if stdout is closed.
pub(crate) fn write_or_print(output: Option<OutputFile<'_>>, text: &str) -> anyhow::Result<()> {
    match output {
        Some(output) => Ok(output.write(text.as_bytes())?),
        None => terminal::print(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_read_however_it_is_encoded() {
        let text = "[job]\nname=ö";
        let little: Vec<u8> = "\u{feff}[job]\nname=ö".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = "\u{feff}[job]\nname=ö".encode_utf16().flat_map(u16::to_be_bytes).collect();
        let marked = format!("\u{feff}{text}").into_bytes();
        for bytes in [text.as_bytes().to_vec(), little.clone(), big, marked] {
            assert_eq!(text_of(bytes.as_slice()).unwrap(), text, "{bytes:?}");
        }
        for bytes in [&little[..little.len() - 1], &[0xff, 0xfe, 0x00, 0xd8], &[b'a', 0xff]] {
            assert_eq!(text_of(bytes).unwrap_err().kind(), io::ErrorKind::InvalidData, "{bytes:?}");
        }
    }

    #[test]
    fn what_has_no_end_is_not_read_to_its_end() {
        assert_eq!(text_of(io::repeat(b'x')).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(read("/dev/zero").unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(text_of(io::repeat(b'x').take(LARGEST)).unwrap().len() as u64, LARGEST);
    }
}
