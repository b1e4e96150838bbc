//! A subject as it was typed: one of plumb's own, or lines for the shell.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use plumb_block::Nanos;
use plumb_text::shell_word;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::file_system::FileSystem;
use crate::subject::{AckBy, CheckBy, Program, Programs, Subject, User, named};

/// A subject as it was typed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum SubjectWords {
    /// Subject of plumb's own, by name.
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
        /// Command that recovers what a cut has left before it is checked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        recover: Option<String>,
        /// Command whose output is compared; `None` for the files themselves.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        read: Option<String>,
        /// Way in which the work acknowledges.
        ack: String,
        /// User as whom the commands run; `None` for the user who runs plumb.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        user: Option<String>,
    },
}

impl SubjectWords {
    /// Checks that the subject can be recorded and judged on this file system.
    ///
    /// # Errors
    /// A usage error if it lacks a checker that is needed there, or acknowledges in another way.
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

    /// Returns the subject. Its programs may take so long each, and are killed at a `stop`.
    ///
    /// # Errors
    /// A usage error if there is none.
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

    /// Returns the program that does the work in a process of its own, which can be traced; `None` if it
    /// cannot be.
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
            // Acknowledgements that come in another way cannot be distinguished from the output of strace.
            Self::Command { run, ack, user, .. } if ack == AckBy::ControlFile.name() => {
                let user = user.as_deref().map(User::named).transpose().ok()?;
                Some(Program { user, ..Program::acknowledging(run.clone()) })
            }
            Self::Command { .. } => None,
        }
    }
}

/// Returns a line for the shell whose program is named from the current directory (`./x.sh`), with the whole
/// path of that: programs start elsewhere. Any other line stays as it is.
pub fn from_here(line: &str) -> String {
    let (program, rest) = line.split_at(line.find(char::is_whitespace).unwrap_or(line.len()));
    let is_from_here = program.starts_with("./") || program.starts_with("../");
    let found = is_from_here.then(|| std::fs::canonicalize(program).ok()).flatten();
    found.map_or_else(|| line.to_owned(), |path| shell_word(&path.display().to_string()) + rest)
}

/// Returns the files of the programs that these lines for the shell name, and those that they name from the
/// root: other words are names in the directory where the program starts.
pub fn files_of<'a>(lines: impl IntoIterator<Item = &'a String>) -> Vec<PathBuf> {
    let words = lines.into_iter().flat_map(|line| {
        let words = line.split_whitespace().enumerate();
        words.filter(|(number, word)| (*number == 0 && word.contains('/')) || word.starts_with('/'))
    });
    words.map(|(_, word)| PathBuf::from(word)).collect()
}
