//! This program as a module of Ansible, for hosts without Python. Ansible copies a binary module to the host as `AnsiballZ_NAME` and runs it with
//! one argument: the path of a JSON file with the parameters of the task and its own, which begin with `_ansible_`. One JSON document on stdout is the
//! answer.
//!
//! The name of the module says what is done: `plumb_facts`, `plumb_policy`, `plumb_verify` or `plumb_rollback`. It is done by plumb's own commands,
//! whose documents are translated into what the modules of the collection return: to the same parameters both answer the same.

mod claims;
mod parameters;
mod policy;
mod program;
mod reading;
mod rollback;

use std::fs::File;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use self::parameters::Parameters;
use self::policy::Policy;
use self::program::Program;
use self::reading::{Facts, Verify};
use self::rollback::Rollback;
use crate::exit::Exit;
use crate::terminal;

/// How Ansible names every module on the host.
const MODULE: &str = "AnsiballZ_";
/// Parameters of Ansible itself.
const OF_ANSIBLE: &str = "_ansible_";

/// The file with the parameters, if Ansible has started this as a module.
pub(crate) fn parameters() -> Option<PathBuf> {
    let mut words = std::env::args_os();
    let name = PathBuf::from(words.next()?);
    let is_module = name.file_name()?.to_str()?.starts_with(MODULE);
    words.next().filter(|_| is_module && words.next().is_none()).map(PathBuf::from)
}

/// Does the task, and prints what became of it: for Ansible a failure is an answer, too.
pub(crate) fn run(parameters: &Path) -> anyhow::Result<Exit> {
    let mut result = Map::from_iter([("changed".to_owned(), json!(false))]);
    let failed = task(parameters, &mut result).err();
    if let Some(Failure { message, exit, document }) = &failed {
        result.insert("failed".to_owned(), json!(true));
        result.insert("msg".to_owned(), json!(message));
        result.extend(exit.map(|exit| ("exit_code".to_owned(), json!(exit))));
        if let Some(document) = document {
            result.entry("document").or_insert_with(|| document.clone());
        }
    }
    terminal::print_json(&result)?;
    Ok(if failed.is_some() { Exit::Failed } else { Exit::Done })
}

/// Why a task failed.
#[derive(Debug)]
struct Failure {
    message: String,
    /// The exit code of plumb, if it was started; less than nothing for a signal.
    exit: Option<i32>,
    /// What plumb printed then.
    document: Option<Value>,
}

impl Failure {
    fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), exit: None, document: None }
    }

    fn of_plumb(message: impl Into<String>, exit: i32) -> Self {
        Self { message: message.into(), exit: Some(exit), document: None }
    }
}

type Done = Result<(), Failure>;

/// What every task has.
struct Task<'a> {
    /// What is returned.
    result: &'a mut Map<String, Value>,
    program: Program,
    /// Whether nothing may be changed.
    check_mode: bool,
    /// A directory that Ansible takes away when the task is over.
    directory: &'a Path,
}

impl Task<'_> {
    fn tell(&mut self, key: &str, value: Value) {
        self.result.insert(key.to_owned(), value);
    }

    /// Ansible shows it beside the result.
    fn warn(&mut self, line: &str) {
        if let Value::Array(all) = self.result.entry("warnings").or_insert_with(|| json!([])) {
            all.push(json!(line));
        }
    }
}

/// What is asked for.
enum Asked {
    Facts(Facts),
    Policy(Policy),
    Verify(Verify),
    Rollback(Rollback),
}

fn task(file: &Path, result: &mut Map<String, Value>) -> Done {
    let unread = |why: &dyn std::fmt::Display| Failure::new(format!("{}: {why}", file.display()));
    let opened = File::open(file).map_err(|error| unread(&error))?;
    let typed: Map<String, Value> = serde_json::from_reader(opened).map_err(|error| unread(&error))?;
    let (own, typed): (Map<_, _>, Map<_, _>) =
        typed.into_iter().partition(|(name, _)| name.starts_with(OF_ANSIBLE));
    let name = own.get("_ansible_module_name").and_then(Value::as_str).unwrap_or_default();
    let mut given = Parameters::of(name, typed);
    let asked = match name.rsplit('.').next().unwrap_or_default().trim_start_matches("plumb_") {
        "facts" => Asked::Facts(Facts::of(&mut given)?),
        "policy" => Asked::Policy(Policy::of(&mut given)?),
        "verify" => Asked::Verify(Verify::of(&mut given)?),
        "rollback" => Asked::Rollback(Rollback::of(&mut given)?),
        _ => {
            return Err(Failure::new(format!(
                "plumb is no module `{name}`: name its file plumb_facts, plumb_policy, plumb_verify or plumb_rollback"
            )));
        }
    };
    let program = given.text("plumb")?;
    given.end()?;
    let program = Program::of(program)?;
    let check_mode = own.get("_ansible_check_mode") == Some(&json!(true));
    let directory = file.parent().unwrap_or(Path::new("/"));
    let mut task = Task { result, program, check_mode, directory };
    match &asked {
        Asked::Facts(asked) => task.facts(asked),
        Asked::Policy(asked) => task.policy(asked),
        Asked::Verify(asked) => task.verify(asked),
        Asked::Rollback(asked) => task.rollback(asked),
    }
}

/// What the system said, without its number.
fn why(error: &std::io::Error) -> String {
    let said = error.to_string();
    said.split_once(" (os error").map_or(said.as_str(), |(why, _)| why).to_owned()
}

/// The entries of a list of a document.
fn entries<'a>(document: &'a Value, list: &str) -> impl Iterator<Item = &'a Value> {
    document[list].as_array().into_iter().flatten()
}

/// A text of an entry.
fn text<'a>(entry: &'a Value, key: &str) -> &'a str {
    entry[key].as_str().unwrap_or_default()
}

/// A disk in a sentence.
fn shown(disk: &Value) -> String {
    match text(disk, "identity") {
        "" => text(disk, "name").to_owned(),
        identity => format!("{} ({identity})", text(disk, "name")),
    }
}

/// Disks with their states before and after, as `--diff` shows them.
fn difference<'a>(disks: impl IntoIterator<Item = &'a (String, String, String)>) -> Value {
    let line = |disk: &str, state: &str| format!("{disk}: {state}\n");
    let lines = disks.into_iter().map(|(disk, before, after)| (line(disk, before), line(disk, after)));
    let (before, after): (String, String) = lines.unzip();
    json!({ "before": before, "after": after, "before_header": "write caches", "after_header": "write caches" })
}
