//! Recognition of earlier results of plumb, by their contents alone.
//!
//! A result in HTML, XML or Markdown ends with a comment that holds the checksum of everything before it.
//! Other formats have the checksum in the extended attribute [`SUM`] of the file. Any later change by
//! somebody else changes the checksum. Without either, only formats count that name plumb in each of their
//! parts: a JSON document with a schema of plumb, and metrics, where each line begins with the metric's name.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use rustix::fs::XattrFlags;
use rustix::io::Errno;
use serde::Deserialize;

use crate::digest::{sha256_hex, sha256_hex_of};

/// Extended attribute of a result: the SHA-256 of its contents in hexadecimal digits.
const SUM: &str = "user.plumb.result";
/// Beginning of the comment at the end of a result, up to the checksum.
const SUM_BEGIN: &str = "<!-- plumb knows its own result by the SHA-256 of all above: ";
/// End of the comment that holds the checksum.
const SUM_END: &str = " -->\n";
/// Last line of a Markdown report before the comment that holds the checksum.
const MARKDOWN_END: &str = "<!-- end of a report of plumb -->\n";
/// Size of the largest file that is read for recognition, in bytes. A larger one counts as foreign.
const LARGEST: u64 = 256 << 20;
/// Bytes at the start of a record that are searched for its schema.
const HEAD: u64 = 64 << 10;

/// Line prefixes in Prometheus metrics.
const METRICS: [&str; 3] = ["plumb_", "# HELP plumb_", "# TYPE plumb_"];

/// Files that mark a directory as a recording, run, campaign or journal of plumb, whose other files are read
/// again later.
const RECORDS: [&str; 4] = ["manifest.json", "recording.json", "campaign.json", "snapshot.json"];
/// File name extensions in a recording that are generated from the other files: pages and text for people.
const REMADE: [&str; 3] = ["html", "md", "txt"];

/// Keys of a JSON document that name the program that wrote it: plumb's own documents have a schema, and its
/// fio documents a version.
#[derive(Deserialize)]
struct Writer {
    schema: Option<String>,
    #[serde(rename = "fio version")]
    fio_version: Option<String>,
}

/// Adds a checksum of the contents to a result in `file`. A file system without extended attributes is not an
/// error; the file is then not recognised later.
///
/// # Errors
/// Fails as read(2) and write(2) do.
pub(crate) fn seal(file: &mut File) -> io::Result<()> {
    let takes_comments = takes_comments(file)?;
    file.rewind()?;
    let sum = sha256_hex_of(&mut *file)?;
    if takes_comments {
        return file.write_all(format!("{SUM_BEGIN}{sum}{SUM_END}").as_bytes());
    }
    rustix::fs::fsetxattr(file, SUM, sum.as_bytes(), XattrFlags::empty()).or_else(|errno| match errno {
        Errno::IO => Err(errno.into()),
        _ => Ok(()),
    })
}

/// Returns true if a result is markup, which may end with a comment.
fn takes_comments(file: &mut File) -> io::Result<bool> {
    let mut begin = Vec::new();
    file.rewind()?;
    (&*file).take(1).read_to_end(&mut begin)?;
    let length = MARKDOWN_END.len() as u64;
    file.seek(SeekFrom::Start(file.metadata()?.len().saturating_sub(length)))?;
    let mut end = Vec::new();
    (&*file).take(length).read_to_end(&mut end)?;
    Ok(begin == b"<" || end == MARKDOWN_END.as_bytes())
}

/// Returns true if these bytes end with the checksum of everything before it.
fn carries_sum(bytes: &[u8]) -> bool {
    let said = bytes.strip_suffix(SUM_END.as_bytes()).and_then(|rest| rest.split_last_chunk::<64>());
    said.is_some_and(|(rest, sum)| {
        let contents = rest.strip_suffix(SUM_BEGIN.as_bytes());
        contents.is_some_and(|contents| sha256_hex(contents).as_bytes() == sum)
    })
}

/// Returns true if the regular file at `path` is an earlier result of plumb, and false if it cannot be read.
pub(crate) fn is_own(path: &Path) -> bool {
    let Ok(file) = File::open(path) else { return false };
    let mut sum = [0; 64];
    let is_sealed = rustix::fs::fgetxattr(&file, SUM, &mut sum) == Ok(sum.len());
    let mut bytes = Vec::new();
    let read = BufReader::new(file).take(LARGEST + 1).read_to_end(&mut bytes);
    let is_whole = read.is_ok() && bytes.len() as u64 <= LARGEST;
    let has_sum = || is_sealed && sha256_hex(&bytes).as_bytes() == sum;
    is_whole && (carries_sum(&bytes) || has_sum() || is_result(&bytes))
}

/// Returns the directory of the recording that contains the regular file at `path`, if the file cannot be
/// regenerated from the others.
pub(crate) fn recording_of(path: &Path) -> Option<&Path> {
    let is_remade = path.extension().is_some_and(|ending| REMADE.iter().any(|made| ending == *made));
    let directory = path.parent().filter(|_| !is_remade)?;
    RECORDS.iter().any(|record| is_plumbs(&directory.join(record))).then_some(directory)
}

/// Returns true if the schema in the JSON of `record` is one of plumb's.
fn is_plumbs(record: &Path) -> bool {
    let mut head = Vec::new();
    let read = File::open(record).and_then(|file| file.take(HEAD).read_to_end(&mut head));
    read.is_ok() && String::from_utf8_lossy(&head).contains("plumb/")
}

/// Returns true if every part of these bytes names plumb as its writer.
fn is_result(bytes: &[u8]) -> bool {
    match bytes {
        [b'{', ..] => is_own_json(bytes),
        _ => str::from_utf8(bytes).is_ok_and(|text| {
            let is_own = |line: &str| METRICS.iter().any(|begin| line.starts_with(begin));
            !text.is_empty() && text.lines().all(is_own)
        }),
    }
}

fn is_own_json(bytes: &[u8]) -> bool {
    match serde_json::from_slice(bytes) {
        Ok(Writer { schema: Some(schema), .. }) => schema.starts_with("plumb/"),
        Ok(Writer { fio_version: Some(version), .. }) => version.starts_with("plumb-"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_without_a_sum_are_recognised_only_where_each_part_is_plumbs() {
        for own in [
            "{\"schema\": \"plumb/load/1\", \"x\": 1}\n",
            "{\"x\": {\"schema\": 3}, \"schema\": \"plumb/survey/1\"}",
            "{\"disk_util\": [], \"fio version\": \"plumb-0.1.0\"}",
            "# HELP plumb_load_info What.\n# TYPE plumb_load_info gauge\nplumb_load_info 1\n",
        ] {
            assert!(is_result(own.as_bytes()), "{own}");
        }
        for foreign in [
            "",
            "{",
            "{}",
            "[{\"schema\": \"plumb/load/1\"}]",
            "{\"schema\": \"other/load/1\", \"of\": \"plumb/load/1\"}",
            "{\"inner\": {\"schema\": \"plumb/load/1\"}}",
            "{\"schema\": \"plumb/load/1\"}\nmy notes\n",
            "{\"schema\": \"plumb/recorded-subject/1\"}\n\u{1}\u{2}",
            "{\"fio version\": \"fio-3.36\"}",
            "# HELP plumb_x X.\nplumb_x 1\nbackup_last_run 7\n",
            "section,name,at_seconds,metric,value,unit\nload,,,x,1,s\nmine,,,y,2,s\n",
            "my notes on real fio\nStarting 1 process\nand then\nplumb-0.1.0 was slower\n",
            "3;plumb-0.1.0;x;0;0\nmy notes\n",
            "my notes\n<!-- end of a report of plumb -->\n",
            "<html><meta name=\"generator\" content=\"plumb\"><p>my notes</p></html>",
        ] {
            assert!(!is_result(foreign.as_bytes()), "{foreign}");
        }
    }
}
