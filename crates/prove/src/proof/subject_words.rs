//! Subject as the user named it: a built-in one, or shell lines.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use plumb_block::Nanos;
use plumb_text::shell_word;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::file_system::FileSystem;
use crate::subject::{AckBy, CheckBy, Program, Programs, Subject, User, named};

/// Subject as the user named it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum SubjectWords {
    /// Built-in subject, by name.
    BuiltIn(String),
    /// Programs.
    Command {
        /// Command that prepares the place.
        setup: Option<String>,
        /// Command that does the work.
        run: String,
        /// Command that checks the result; `None` for the comparison with the moments of the work.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        check: Option<String>,
        /// Command that recovers the state after a cut before the check.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        recover: Option<String>,
        /// Command whose output is compared; `None` for the files themselves.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        read: Option<String>,
        /// Way in which the work acknowledges.
        ack: String,
        /// User who runs the commands; `None` for the user who runs plumb.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        user: Option<String>,
    },
}

impl SubjectWords {
    /// Checks that the subject can be recorded and judged on this file system.
    ///
    /// # Errors
    /// A usage error if it lacks a necessary checker, or acknowledges in an unsuitable way.
    pub fn check(&self, file_system: FileSystem) -> Result<()> {
        let Self::Command { check, ack, .. } = self else { return Ok(()) };
        let is_by_file = ack == AckBy::ControlFile.name();
        let why = match check {
            None if file_system == FileSystem::None => "--fs none has no files to compare",
            None if !is_by_file => "without a checker the program acknowledges through the control file",
            _ if file_system.is_posix() && !is_by_file => {
                let why =
                    format!("with --fs {file_system} the program acknowledges through the control file");
                return Err(Error::usage(format!("--ack {ack}: {why}")));
            }
            _ => return Ok(()),
        };
        Err(Error::usage(format!("{why}: name a checker with --check")))
    }

    /// Returns the subject. Each of its programs has the time limit `timeout`, and is killed by `stop`.
    ///
    /// # Errors
    /// A usage error if the subject does not exist.
    pub fn subject(&self, timeout: Nanos, stop: &Arc<AtomicBool>) -> Result<Arc<dyn Subject>> {
        match self {
            Self::BuiltIn(name) => named(name),
            Self::Command { setup, run, check, recover, read, ack, user } => Ok(Arc::new(Programs {
                run: Program {
                    line: run.clone(),
                    ack: ack.parse()?,
                    user: user.as_deref().map(User::named).transpose()?,
                },
                check: match check {
                    Some(line) => CheckBy::Command(line.clone()),
                    None => CheckBy::Moments(read.clone()),
                },
                recover: recover.clone(),
                setup: setup.clone(),
                timeout,
                stop: Arc::clone(stop),
            })),
        }
    }

    /// Returns the program that does the work in a separate process, which can be traced; `None` if there is
    /// none.
    pub fn program(&self) -> Option<Program> {
        match self {
            Self::BuiltIn(name) => named(name).ok()?.program().or_else(|| {
                let plumb = std::env::current_exe().ok()?;
                Some(Program::acknowledging(format!(
                    "exec {} prove subject {} \"${{PLUMB_DEVICE:-$PWD}}\"",
                    shell_word(&plumb.display().to_string()),
                    shell_word(name)
                )))
            }),
            // Other channels of acknowledgements cannot be distinguished from the output of strace.
            Self::Command { run, ack, user, .. } if ack == AckBy::ControlFile.name() => {
                let user = user.as_deref().map(User::named).transpose().ok()?;
                Some(Program { user, ..Program::acknowledging(run.clone()) })
            }
            Self::Command { .. } => None,
        }
    }
}

/// Returns a shell line whose program has a path relative to the current directory (`./x.sh`), with its
/// absolute path, since programs start elsewhere. Other lines stay as they are.
pub fn from_here(line: &str) -> String {
    let (program, rest) = line.split_at(line.find(char::is_whitespace).unwrap_or(line.len()));
    let is_from_here = program.starts_with("./") || program.starts_with("../");
    let found = is_from_here.then(|| std::fs::canonicalize(program).ok()).flatten();
    found.map_or_else(|| line.to_owned(), |path| shell_word(&path.display().to_string()) + rest)
}

/// Returns the files of the programs in these shell lines, and those named by absolute paths. Other words are
/// relative to the directory in which the program starts.
pub fn files_of<'a>(lines: impl IntoIterator<Item = &'a String>) -> Vec<PathBuf> {
    let words = lines.into_iter().flat_map(|line| {
        let words = line.split_whitespace().enumerate();
        words.filter(|(number, word)| (*number == 0 && word.contains('/')) || word.starts_with('/'))
    });
    words.map(|(_, word)| PathBuf::from(word)).collect()
}
