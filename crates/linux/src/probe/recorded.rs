//! A recorded probe in one text file: `probe.json`.
//!
//! ```json
//! { "schema": "plumb/probe/1",
//!   "answers": { "sda": { "mode-sense-08-current": "001f0010...", "ata-identify": "!denied" } } }
//! ```
//!
//! Answers are hexadecimal; a refusal starts with `!`.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{Probe, ProbedDevice, Refusal, Reply, Request};
use crate::recorded::{self, RecordedError};
use plumb_state::hex;

/// A probe that answers from memory. It is loaded from a file, or built with [`RecordedProbe::put`] in tests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordedProbe {
    answers: BTreeMap<String, BTreeMap<Request, Reply>>,
}

#[derive(Serialize, Deserialize)]
struct Document {
    schema: String,
    answers: BTreeMap<String, BTreeMap<String, String>>,
}

impl RecordedProbe {
    /// Name and version of the format.
    pub const SCHEMA: &str = "plumb/probe/1";

    /// Creates a probe without answers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the answer of the device called `name` to `request`.
    pub fn put(&mut self, name: &str, request: Request, reply: Reply) {
        self.answers.entry(name.to_owned()).or_default().insert(request, reply);
    }

    /// Removes the answer of the device called `name` to `request`.
    pub fn remove(&mut self, name: &str, request: Request) {
        if let Some(answers) = self.answers.get_mut(name) {
            answers.remove(&request);
        }
    }

    /// Returns every question that has an answer.
    pub fn questions(&self) -> Vec<(String, Request)> {
        let device = |(name, answers): (&String, &BTreeMap<Request, Reply>)| {
            answers.keys().map(|request| (name.clone(), *request)).collect::<Vec<_>>()
        };
        self.answers.iter().flat_map(device).collect()
    }

    /// Reads `probe.json`.
    ///
    /// # Errors
    /// [`RecordedError`] names the file and the problem.
    pub fn load(file: &Path) -> Result<Self, RecordedError> {
        let document: Document = recorded::load(file, Self::SCHEMA)?;
        document.decode().map_err(|what| RecordedError::content(file, &what))
    }

    /// Encodes the answers as `probe.json`, one on each line.
    ///
    /// # Errors
    /// Fails as [`recorded::encode`] does.
    pub fn to_json(&self) -> serde_json::Result<Vec<u8>> {
        recorded::encode(&self.encode())
    }

    fn encode(&self) -> Document {
        let text = |reply: &Reply| match reply {
            Ok(bytes) => hex::encode(bytes),
            Err(refusal) => refusal.to_recorded(),
        };
        let device = |(name, answers): (&String, &BTreeMap<Request, Reply>)| {
            let answers = answers.iter().map(|(request, reply)| (request.to_string(), text(reply)));
            (name.clone(), answers.collect())
        };
        Document { schema: Self::SCHEMA.to_owned(), answers: self.answers.iter().map(device).collect() }
    }
}

impl Document {
    fn decode(self) -> Result<RecordedProbe, String> {
        let mut probe = RecordedProbe::new();
        for (name, answers) in self.answers {
            for (request, text) in answers {
                let at = |what: String| format!("{name}, {request}: {what}");
                let reply = if text.starts_with('!') {
                    Err(text.parse::<Refusal>().map_err(|error| at(error.to_string()))?)
                } else {
                    Ok(hex::decode(&text).map_err(|error| at(error.to_string()))?)
                };
                let request = request.parse().map_err(|error| at(format!("{error}")))?;
                probe.put(&name, request, reply);
            }
        }
        Ok(probe)
    }
}

impl Probe for RecordedProbe {
    fn ask(&self, device: ProbedDevice<'_>, request: Request) -> Reply {
        let answer = self.answers.get(device.name).and_then(|answers| answers.get(&request));
        answer.cloned().unwrap_or(Err(Refusal::NotRecorded))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::DeviceNumber;

    #[test]
    fn answers_survive_the_file() {
        let mut probe = RecordedProbe::new();
        probe.put("sda", Request::Inquiry, Ok(vec![0, 1, 255]));
        probe.put("sda", Request::AtaIdentify, Err(Refusal::Denied));
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("probe.json");
        std::fs::write(&file, probe.to_json().unwrap()).unwrap();
        let loaded = RecordedProbe::load(&file).unwrap();
        assert_eq!(loaded, probe);
        assert_eq!(loaded.questions().len(), 2);
        let sda = ProbedDevice { name: "sda", number: DeviceNumber { major: 8, minor: 0 } };
        assert_eq!(loaded.ask(sda, Request::Inquiry), Ok(vec![0, 1, 255]));
        assert_eq!(loaded.ask(sda, Request::DmTable), Err(Refusal::NotRecorded));
    }

    #[test]
    fn what_is_no_recorded_probe_is_refused_by_name() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("probe.json");
        for (text, expected) in [
            ("[]", "not a recording"),
            (r#"{"schema":"x","answers":{}}"#, "the schema `x`"),
            (
                r#"{"schema":"plumb/probe/1","answers":{"sda":{"inquiry":"0"}}}"#,
                "sda, inquiry: expected an even",
            ),
            (r#"{"schema":"plumb/probe/1","answers":{"sda":{"inquiry":"!no"}}}"#, "`!no` is not a recorded"),
            (r#"{"schema":"plumb/probe/1","answers":{"sda":{"what":"00"}}}"#, "`what` is not a request"),
        ] {
            std::fs::write(&file, text).unwrap();
            let error = RecordedProbe::load(&file).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
