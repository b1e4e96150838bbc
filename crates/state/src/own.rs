//! How an earlier result of plumb is recognised, by its contents alone: whoever writes a format puts into it
//! what is looked for here.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use serde::Deserialize;

/// The largest file that is read to be recognised, in bytes. A larger one counts as somebody else's.
const LARGEST: u64 = 256 << 20;
/// The bytes from the start within which formats with a head are recognised.
const HEAD: usize = 64 << 10;

/// The schemas of documents that begin with a JSON value and go on with other bytes.
const JSON_THEN_BYTES: &str = "plumb/recorded-subject/";
/// The last line of each Markdown report.
const MARKDOWN_END: &str = "<!-- end of a report of plumb -->\n";

/// Files by which a directory is known to hold a recording, a run, a campaign or a journal of plumb, whose
/// other files are read again later.
const RECORDS: [&str; 4] = ["manifest.json", "recording.json", "campaign.json", "snapshot.json"];
/// Endings of files of a recording that are made from the others: pages and text for people.
const REMADE: [&str; 3] = ["html", "md", "txt"];

/// The keys of a JSON document that say who wrote it: plumb's own name their schema, and plumb's fio
/// documents its version.
#[derive(Deserialize)]
struct Writer {
    schema: Option<String>,
    #[serde(rename = "fio version")]
    fio_version: Option<String>,
}

/// Returns whether the regular file at `path` is an earlier result of plumb. A file that cannot be read is
/// not.
pub(crate) fn is_own(path: &Path) -> bool {
    let Ok(file) = File::open(path) else { return false };
    let mut bytes = Vec::new();
    let read = BufReader::new(file).take(LARGEST + 1).read_to_end(&mut bytes);
    read.is_ok() && bytes.len() as u64 <= LARGEST && is_result(&bytes)
}

/// Returns the directory of the recording that the regular file at `path` is a part of, if it is a part that
/// cannot be made again from the others.
pub(crate) fn recording_of(path: &Path) -> Option<&Path> {
    let is_remade = path.extension().is_some_and(|ending| REMADE.iter().any(|made| ending == *made));
    let directory = path.parent().filter(|_| !is_remade)?;
    RECORDS.iter().any(|record| is_plumbs(&directory.join(record))).then_some(directory)
}

/// Returns whether a record is one of plumb's, by the schema that its JSON names.
fn is_plumbs(record: &Path) -> bool {
    let mut head = Vec::new();
    let read = File::open(record).and_then(|file| file.take(HEAD as u64).read_to_end(&mut head));
    read.is_ok() && String::from_utf8_lossy(&head).contains("plumb/")
}

fn is_result(bytes: &[u8]) -> bool {
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(HEAD)]);
    match bytes {
        [b'{', ..] => is_own_json(bytes),
        // HTML and JUnit XML.
        [b'<', ..] => {
            head.contains("<meta name=\"generator\" content=\"plumb\">")
                || head.contains("<testsuites name=\"plumb prove\"")
        }
        _ => {
            head.starts_with("section,name,at_seconds,metric,value,unit\n")
                || head.starts_with("# HELP plumb_")
                || is_fio_text(&head)
                || is_manual_page(&head)
                || bytes.ends_with(MARKDOWN_END.as_bytes())
        }
    }
}

fn is_own_json(bytes: &[u8]) -> bool {
    let mut values = serde_json::Deserializer::from_slice(bytes).into_iter::<Writer>();
    let Some(Ok(writer)) = values.next() else { return false };
    let is_last = bytes[values.byte_offset()..].trim_ascii().is_empty();
    match (writer.schema, writer.fio_version) {
        (Some(schema), _) => schema.starts_with("plumb/") && (is_last || schema.starts_with(JSON_THEN_BYTES)),
        (None, Some(version)) => version.starts_with("plumb-") && is_last,
        (None, None) => false,
    }
}

/// Returns whether it is text in fio's form, normal or terse: with plumb's version in the place of fio's.
fn is_fio_text(head: &str) -> bool {
    let normal = head.contains("\nplumb-") && head.contains("\nStarting ");
    let terse = head.split_once(';').is_some_and(|(version, rest)| {
        version.bytes().all(|byte| byte.is_ascii_digit()) && rest.starts_with("plumb-")
    });
    normal || terse
}

fn is_manual_page(head: &str) -> bool {
    head.starts_with(".ie ") && head.contains("\n.TH plumb")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_recognised_and_files_that_only_mention_plumb_are_not() {
        for own in [
            "{\"schema\": \"plumb/load/1\", \"x\": 1}\n",
            "{\"x\": {\"schema\": 3}, \"schema\": \"plumb/survey/1\"}",
            "{\"schema\":\"plumb/recorded-subject/1\"}\n\u{1}\u{2}",
            "{\"disk_util\": [], \"fio version\": \"plumb-0.1.0\"}",
            "section,name,at_seconds,metric,value,unit\nload,,,x,1,s\n",
            "# HELP plumb_load_info What.\n",
            "x: (g=0): rw=write\nplumb-0.1.0\nStarting 1 thread\n",
            "3;plumb-0.1.0;x;0;0\n",
            "# plumb load\n\nText.\n\n<!-- end of a report of plumb -->\n",
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
            "{\"fio version\": \"fio-3.36\"}",
            "section,name\n1,2\n",
            "plumb load f\n",
            "# plumb\nplumb-1 is the best\n",
            "<html><body>plumb</body></html>",
            "<!-- end of a report of plumb -->\nnotes\n",
        ] {
            assert!(!is_result(foreign.as_bytes()), "{foreign}");
        }
    }
}
