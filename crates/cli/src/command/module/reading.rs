//! `plumb_facts` and `plumb_verify`: tasks that change nothing.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use plumb_policy::journal;
use serde_json::{Map, Value, json};

use super::parameters::Parameters;
use super::{Done, Failure, Task, entries, shown, text, why};
use crate::arguments::policy::JOURNALS;

/// A command whose document is a fact, and the list in it whose entries have findings.
struct Fact {
    name: &'static str,
    words: &'static [&'static str],
    schema: &'static str,
    list: &'static str,
}

const FACTS: [Fact; 2] = [
    Fact { name: "policy", words: &["policy", "show", "--json"], schema: "plumb/policy/1", list: "devices" },
    Fact { name: "survey", words: &["survey", "--all", "--json"], schema: "plumb/survey/1", list: "paths" },
];

/// What `plumb_facts` takes: the names of facts.
pub(super) struct Facts {
    gather: Vec<String>,
}

impl Facts {
    pub(super) fn of(given: &mut Parameters) -> Result<Self, Failure> {
        let all = FACTS.map(|fact| fact.name);
        let gather = given.choices("gather", &all)?;
        Ok(Self { gather: gather.unwrap_or_else(|| all.map(str::to_owned).to_vec()) })
    }
}

/// What `plumb_verify` takes.
pub(super) struct Verify {
    plan: Option<PathBuf>,
    /// Whether a disk that differs fails the task.
    fails: bool,
    metrics: Option<PathBuf>,
    journals: PathBuf,
}

impl Verify {
    pub(super) fn of(given: &mut Parameters) -> Result<Self, Failure> {
        Ok(Self {
            plan: given.path("plan")?,
            fails: given.choice("drift", &["fail", "report"])? != Some("report"),
            metrics: given.path("metrics")?,
            journals: journals(given)?,
        })
    }
}

/// The directory of the journals.
pub(super) fn journals(given: &mut Parameters) -> Result<PathBuf, Failure> {
    Ok(given.path("journals")?.unwrap_or_else(|| JOURNALS.into()))
}

impl Task<'_> {
    /// All that is known of the disks and the write paths.
    pub(super) fn facts(&mut self, asked: &Facts) -> Done {
        let mut facts = Map::from_iter([("version".to_owned(), json!(self.program.version()?))]);
        let mut findings: Vec<Value> = Vec::new();
        for fact in asked.gather.iter().filter_map(|name| FACTS.iter().find(|fact| fact.name == name)) {
            let (_, document) = self.program.document(fact.words, fact.schema, &[0, 1])?;
            let all = entries(&document, fact.list).flat_map(|part| entries(part, "findings"));
            let serious = all.filter(|finding| text(finding, "severity") != "info");
            for sentence in serious.map(|finding| &finding["sentence"]) {
                if !findings.contains(sentence) {
                    findings.push(sentence.clone());
                }
            }
            facts.insert(fact.name.to_owned(), document);
        }
        self.tell("ansible_facts", json!({ "plumb": facts }));
        self.tell("findings", Value::Array(findings));
        Ok(())
    }

    /// Whether the disks still are as they were planned to be.
    pub(super) fn verify(&mut self, asked: &Verify) -> Done {
        let plan = named_or_newest(asked.plan.as_ref(), &asked.journals)?.display().to_string();
        let metrics = asked.metrics.as_ref().map(|file| file.display().to_string());
        let mut words = vec!["policy", "verify", "--json"];
        words.extend(metrics.iter().flat_map(|file| ["--prometheus-file", file]));
        words.extend(["--", &plan]);
        let (exit, document) = self.program.document(&words, "plumb/policy-verify/1", &[0, 1])?;
        let lines: Vec<String> = entries(&document, "disks")
            .flat_map(|disk| {
                let each = entries(disk, "drift").filter_map(Value::as_str);
                each.map(move |line| format!("{}: {line}", shown(disk)))
            })
            .collect();
        self.tell("disks", document["disks"].clone());
        self.tell("drifted", json!(!lines.is_empty()));
        self.tell("plan", json!(plan));
        if lines.is_empty() || !asked.fails {
            return Ok(());
        }
        Err(Failure::of_plumb(format!("not as planned: {}", lines.join("; ")), exit))
    }
}

/// The journals of applies, the newest last: their names begin with the time. Those of comparisons, and of what is set at every start, have other
/// names.
pub(super) fn of_applies(root: &Path) -> Vec<PathBuf> {
    // What cannot be read has none.
    let mut found = journal::list(root).unwrap_or_default();
    found.retain(|path| {
        path.file_name().is_some_and(|name| name.as_encoded_bytes().first().is_some_and(u8::is_ascii_digit))
    });
    found
}

/// The one that was named, or the newest of them.
pub(super) fn named_or_newest(named: Option<&PathBuf>, root: &Path) -> Result<PathBuf, Failure> {
    if let Some(journal) = named.cloned().or_else(|| of_applies(root).pop()) {
        return Ok(journal);
    }
    let place = root.display();
    Err(Failure::new(match root.read_dir() {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            format!(
                "no journal can be looked for in {place}: {}; name another place with `journals`",
                why(&error)
            )
        }
        _ => format!(
            "there is no journal in {place}: nothing was applied here; name another place with `journals`"
        ),
    }))
}
