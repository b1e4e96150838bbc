//! JSON documents in a file, with repeated results of one run removed.

use serde_json::Value;

use super::field::Field;
use crate::error::Error;

/// Text that fio prints before its result when interrupted.
const INTERRUPTED: &str = "fio: terminating on signal";
/// Maximum difference between the starts of results of one run, as a share of its length. Starts of different
/// runs differ by more than the length of one.
const SAME_START: f64 = 0.5;

/// A result.
#[derive(Debug, Clone)]
pub(super) struct Document {
    /// The JSON object.
    pub(super) root: Value,
    /// Reason why the run ended early, from the text around the JSON.
    pub(super) incomplete_because: Option<String>,
}

/// Parses the documents in `text`. Of several results of one run, returns the last.
///
/// # Errors
/// The position at which the first document is not JSON, or not of fio.
pub(super) fn read(text: &str, file: &str) -> Result<Vec<Document>, Error> {
    let mut documents: Vec<Document> = Vec::new();
    let mut at = 0;
    while let Some(begin) = begin_of_next(text, at) {
        let before = &text[at..begin];
        let mut values = serde_json::Deserializer::from_str(&text[begin..]).into_iter::<Value>();
        let root = match values.next() {
            Some(Ok(root)) => root,
            Some(Err(error)) if documents.is_empty() => {
                let line = text[..begin].lines().count() + error.line();
                return Err(Error::new(format!("{file}:{line}"), format!("this is not JSON: {error}")));
            }
            // Text after the last complete result is an incomplete result or other output.
            Some(Err(_)) | None => {
                if let Some(last) = documents.last_mut() {
                    let cut = "the file ends within a later result: fio, or the copy, was cut off";
                    last.incomplete_because.get_or_insert_with(|| cut.to_owned());
                }
                break;
            }
        };
        at = begin + values.byte_offset();
        let fields = Field::root(file, &root);
        if let Some(schema) = fields.get("schema").text().filter(|schema| schema.starts_with("plumb/")) {
            let problem =
                format!("it is a document of plumb ({schema}), which is shown from where it was recorded");
            return Err(Error::new(file, problem).remedy("name the directory of the run"));
        }
        if fields.get("fio version").text().is_none() {
            let problem = "it is JSON, but not of fio: `fio version` is missing";
            return Err(Error::new(file, problem).remedy("name what `fio --output-format=json` printed"));
        }
        let interrupted = before.lines().find(|line| line.contains(INTERRUPTED));
        let incomplete_because = interrupted.map(|line| format!("fio was interrupted: {}", line.trim()));
        let document = Document { root, incomplete_because };
        match documents.last_mut() {
            Some(last) if is_same_run(&last.root, &document.root)? => *last = document,
            _ => documents.push(document),
        }
    }
    let empty = || Error::new(file, "it is empty").remedy("name what `fio --output-format=json` printed");
    if documents.is_empty() { Err(empty()) } else { Ok(documents) }
}

/// Returns the position of the next object: a brace at the start of a line or of a list element.
fn begin_of_next(text: &str, at: usize) -> Option<usize> {
    let mut from = at;
    loop {
        let found = from + text[from..].find('{')?;
        let line = text[..found].rfind('\n').map_or(0, |newline| newline + 1).max(at);
        if text[line..found]
            .trim_matches(|letter: char| letter.is_whitespace() || "[,".contains(letter))
            .is_empty()
        {
            return Some(found);
        }
        from = found + 1;
    }
}

/// Returns true if `later` is a later result of the run of `earlier`: the same jobs with the same start.
fn is_same_run(earlier: &Value, later: &Value) -> Result<bool, Error> {
    let jobs = |root: &Value| {
        let all = ["jobs", "client_stats"].into_iter().filter_map(|name| root[name].as_array());
        let identity =
            |job: &Value| ["jobname", "groupid", "job options", "job_start"].map(|name| job[name].clone());
        (root["fio version"].clone(), all.flatten().map(identity).collect::<Vec<_>>())
    };
    if jobs(earlier) != jobs(later) {
        return Ok(false);
    }
    let (one, other) = (Progress::from_document(earlier)?, Progress::from_document(later)?);
    let moved = ((other.printed - one.printed) - (other.ran - one.ran)).abs();
    Ok(other.ran >= one.ran && (one.ran == 0.0 || moved < SAME_START * one.ran))
}

/// Progress of a run when it printed a result, in seconds.
struct Progress {
    /// Time of the result, since 1970.
    printed: f64,
    /// Total run time of its groups of jobs, one after another.
    ran: f64,
}

impl Progress {
    fn from_document(root: &Value) -> Result<Self, Error> {
        let root = Field::root("result", root);
        let exact = root.get("timestamp_ms").number()?.map(|ms| ms / 1e3);
        let printed = exact.or(root.get("timestamp").number()?).unwrap_or(0.0);
        let mut groups: Vec<(Option<u64>, f64)> = Vec::new();
        for job in root.get("jobs").list().into_iter().chain(root.get("client_stats").list()) {
            let mut ran = job.get("job_runtime").seconds(1e3)?;
            for side in ["read", "write", "trim", "mixed"].map(|side| job.get(side).get("runtime")) {
                ran = ran.into_iter().chain(side.seconds(1e3)?).reduce(f64::max);
            }
            let (group, ran) = (job.get("groupid").count()?, ran.unwrap_or(0.0));
            match groups.iter_mut().find(|(known, _)| *known == group) {
                Some((_, longest)) => *longest = longest.max(ran),
                None => groups.push((group, ran)),
            }
        }
        Ok(Self { printed, ran: groups.iter().map(|(_, ran)| ran).sum() })
    }
}
