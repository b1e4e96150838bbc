//! The commands of plumb that a task is done by.

use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rustix::fs::{Access, access};
use serde_json::Value;

use super::{Failure, text};

/// What is running this program.
const OWN: &str = "/proc/self/exe";
/// Where a program is looked for beside PATH.
const PLACES: [&str; 4] = ["/usr/local/bin", "/usr/sbin", "/sbin", "/usr/local/sbin"];

/// The program whose commands are run.
pub(super) struct Program {
    path: String,
}

impl Program {
    /// One that is on the host, by its path or its name; without either this one, which is gone from the host when the task is over.
    pub(super) fn of(named: Option<String>) -> Result<Self, Failure> {
        let Some(named) = named else { return Ok(Self { path: OWN.to_owned() }) };
        let is_program = |path: &Path| path.is_file() && access(path, Access::EXEC_OK).is_ok();
        let paths = std::env::var_os("PATH").unwrap_or_default();
        let found = match named.contains('/') {
            true => Some(PathBuf::from(&named)).filter(|path| is_program(path)),
            false => PLACES[..2]
                .iter()
                .map(PathBuf::from)
                .chain(std::env::split_paths(&paths))
                .chain(PLACES[2..].iter().map(PathBuf::from))
                .map(|place| place.join(&named))
                .find(|path| is_program(path)),
        };
        let none = || {
            Failure::new(format!(
                "there is no program {named} on this host: install the package, push the static binary with plumb.storage.push, or name its path \
                 with `plumb`"
            ))
        };
        Ok(Self { path: found.ok_or_else(none)?.display().to_string() })
    }

    /// Where it stays on the host; `None` of this one.
    pub(super) fn lasting(&self) -> Option<&str> {
        Some(self.path.as_str()).filter(|path| *path != OWN)
    }

    /// The exit code and the document of a command, which has to end with one of the codes that are `expected`, and to print a document of
    /// this schema.
    pub(super) fn document(
        &self,
        words: &[impl AsRef<str>],
        schema: &str,
        expected: &[i32],
    ) -> Result<(i32, Value), Failure> {
        let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
        let command = words[..words.len().min(2)].join(" ");
        let Output { status, stdout, stderr } = self.output(&words)?;
        // As Python tells a signal.
        let exit = status.code().or_else(|| status.signal().map(|signal| -signal)).unwrap_or_default();
        let document = serde_json::from_slice::<Value>(&stdout).ok();
        if !expected.contains(&exit) || (document.is_none() && exit != 0) {
            let message = format!("plumb {command}: {}", sentence(exit, &String::from_utf8_lossy(&stderr)));
            return Err(Failure { message, exit: Some(exit), document });
        }
        let found = match document.as_ref().map_or("", |document| text(document, "schema")) {
            "" => "no document",
            found => found,
        };
        let message = format!(
            "plumb {command} printed {found} instead of a document {schema}: {} is another version of plumb, or another program",
            self.path
        );
        match document {
            Some(document) if text(&document, "schema") == schema => Ok((exit, document)),
            document => Err(Failure { message, exit: Some(exit), document }),
        }
    }

    /// Its version, as it says it itself.
    pub(super) fn version(&self) -> Result<String, Failure> {
        let Output { status, stdout, stderr } = self.output(&["--version"])?;
        let printed = String::from_utf8_lossy(&stdout);
        let version = printed.strip_prefix("plumb ").and_then(|rest| rest.split_whitespace().next());
        let exit = status.code().unwrap_or(-1);
        let none = || {
            let message =
                format!("{} is no plumb: {}", self.path, sentence(exit, &String::from_utf8_lossy(&stderr)));
            Failure { message, exit: Some(exit), document: None }
        };
        version.filter(|_| exit == 0).map(str::to_owned).ok_or_else(none)
    }

    fn output(&self, words: &[&str]) -> Result<Output, Failure> {
        let failed = |error| Failure::new(format!("{}: {error}", self.path));
        Command::new(&self.path).args(words).output().map_err(failed)
    }
}

/// What plumb said last, without the progress before it; what the exit code means if it said nothing.
fn sentence(exit: i32, said: &str) -> String {
    let said = said.trim();
    if let Some(at) =
        said.rfind("\nplumb: ").map(|at| at + 1).or_else(|| said.starts_with("plumb: ").then_some(0))
    {
        return said[at..].trim_start_matches("plumb: ").to_owned();
    }
    let meaning = match exit {
        2 => "the command line makes no sense to it".to_owned(),
        3 => "it could not measure, or was interrupted".to_owned(),
        4 => "it refused for safety".to_owned(),
        5 => "it failed".to_owned(),
        exit => format!("it ended with exit code {exit}"),
    };
    if said.is_empty() { meaning } else { format!("{meaning} ({said})") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_last_may_have_several_lines() {
        assert_eq!(
            sentence(2, "plumb: half done\nplumb: refused:\n  sda: in use\n"),
            "refused:\n  sda: in use"
        );
        assert_eq!(sentence(5, "no plumb here"), "it failed (no plumb here)");
        assert_eq!(sentence(-9, ""), "it ended with exit code -9");
    }
}
