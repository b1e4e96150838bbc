//! The PostgreSQL that is installed: the transactions of a [`History`], each acknowledged when its commit was answered.
//!
//! The work is done by a server and one session of psql; halfway there is a checkpoint, so that pages are written whose later
//! changes stand in the log. A check starts a stand-alone server on what is left, which recovers it, has amcheck look at the
//! table and its index, and reads the rows.
//!
//! PostgreSQL refuses to be root, and its directory lies where only root may go. So it runs in a user namespace in which root
//! is called nobody; files stay root's.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use plumb_report::document::proof::FailureClass;

use super::history::{History, Transaction};
use super::named::{Settings, Values};
use super::{Outcome, Subject, SubjectError};

/// Where Debian has the programs of each version; elsewhere they are in the path.
const VERSIONS: &str = "/usr/lib/postgresql";
/// The directory of the cluster, beneath the place.
const DATA: &str = "data";
/// What stands before the rows in the answer of the check.
const ROWS: &str = "rows=";
/// Looks at every page, if the extension is there.
const LOOK: &str = "DO $$ BEGIN IF EXISTS (SELECT FROM pg_extension WHERE extname = 'amcheck') THEN \
    PERFORM bt_index_check('entry_pkey', true); \
    IF EXISTS (SELECT FROM verify_heapam('entry')) THEN RAISE 'verify_heapam finds damage'; END IF; END IF; END $$";

/// PostgreSQL with some settings.
pub(super) struct Postgres {
    name: String,
    settings: Vec<String>,
    history: History,
}

impl Postgres {
    pub(super) const OPTIONS: &[(&str, Values)] = &[
        ("fsync", Values::OneOf(&["on", "off"])),
        ("synchronous_commit", Values::OneOf(&["on", "off"])),
        ("full_page_writes", Values::OneOf(&["on", "off"])),
        History::INSERTS,
        History::DELETES,
        History::ROW,
    ];

    pub(super) fn of(settings: &Settings<'_>) -> Result<Self, String> {
        let set = ["fsync", "synchronous_commit", "full_page_writes"].map(|key| (key, settings.word(key)));
        Ok(Self {
            name: settings.typed.to_owned(),
            settings: set.map(|(key, value)| format!("{key}={value}")).to_vec(),
            history: History::of(settings)?,
        })
    }

    fn failed(&self, what: impl std::fmt::Display) -> SubjectError {
        SubjectError::Failed { subject: self.name.clone(), what: what.to_string() }
    }

    /// A program of PostgreSQL. It keeps no descriptor of ours and waits for no input.
    fn program(&self, program: &str) -> Result<Command, SubjectError> {
        let found = find(program).ok_or_else(|| {
            self.failed(format_args!(
                "there is no `{program}` in {VERSIONS}/*/bin or the path: install postgresql"
            ))
        })?;
        let mut command = if rustix::process::geteuid().is_root() {
            let mut command = Command::new("unshare");
            command.args(["--user", "--map-user=65534", "--map-group=65534", "--"]).arg(found);
            command
        } else {
            Command::new(found)
        };
        command.stdin(Stdio::null()).env("LC_ALL", "C");
        Ok(command)
    }

    /// Runs a program with that input, to its end.
    fn run(&self, command: &mut Command, input: &str) -> Result<Output, SubjectError> {
        let failed = |error: std::io::Error| self.failed(format_args!("cannot run {command:?}: {error}"));
        let mut spooled = tempfile::tempfile().map_err(failed)?;
        spooled.write_all(input.as_bytes()).map_err(failed)?;
        std::io::Seek::rewind(&mut spooled).map_err(failed)?;
        command
            .stdin(spooled)
            .output()
            .map_err(|error| self.failed(format_args!("cannot run {command:?}: {error}")))
    }

    /// The same, where it has to succeed.
    fn run_well(&self, command: &mut Command, input: &str) -> Result<(), SubjectError> {
        let output = self.run(command, input)?;
        if output.status.success() {
            return Ok(());
        }
        let said = complaint(&output).unwrap_or_else(|| output.status.to_string());
        Err(self.failed(format_args!("{command:?} failed: {said}")))
    }

    /// A server without network and other processes, which recovers what it finds and takes statements as lines.
    fn alone(&self, place: &Path) -> Result<Command, SubjectError> {
        let mut command = self.program("postgres")?;
        command.arg("--single").arg("-D").arg(place.join(DATA)).arg("postgres");
        Ok(command)
    }

    fn statement(&self, transaction: Transaction) -> String {
        match transaction {
            Transaction::Insert(row) => {
                format!(
                    "INSERT INTO entry VALUES ({row}, '{}');",
                    String::from_utf8_lossy(&self.history.text(row))
                )
            }
            Transaction::Delete(row) => format!("DELETE FROM entry WHERE id = {row};"),
        }
    }

    /// The transactions, in one session.
    fn session(&self, socket: &Path, acknowledge: &mut dyn FnMut(u64)) -> Result<(), SubjectError> {
        let mut psql = self.program("psql")?;
        psql.args(["-X", "-U", "postgres", "-d", "postgres", "-h"]).arg(socket);
        let failed = |error: std::io::Error| self.failed(format_args!("psql: {error}"));
        let mut child = psql
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let (Some(mut asked), Some(answers), Some(mut errors)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(self.failed("psql has no pipes"));
        };
        let mut answers = BufReader::new(answers).lines();
        let mut ask = |statement: &str| {
            writeln!(asked, "{statement}")?;
            let answer = answers.next().transpose()?.unwrap_or_default();
            // `INSERT 0 1`, `DELETE 1`, `CHECKPOINT`: the first word of what was asked.
            Ok(statement.split([' ', ';']).next() == answer.split(' ').next() && !answer.ends_with(" 0"))
        };
        let all: Vec<_> = self.history.transactions().collect();
        let mut refused = None;
        for (number, transaction) in &all {
            let statement = self.statement(*transaction);
            if !ask(&statement).map_err(failed)? {
                refused = Some(statement);
                break;
            }
            acknowledge(*number);
            if *number as usize == all.len() / 2 && !ask("CHECKPOINT;").map_err(failed)? {
                refused = Some("CHECKPOINT".to_owned());
                break;
            }
        }
        drop(asked);
        let mut said = String::new();
        errors.read_to_string(&mut said).map_err(failed)?;
        child.wait().map_err(failed)?;
        match refused {
            None => Ok(()),
            Some(statement) => {
                Err(self.failed(format_args!("psql does not confirm `{statement}`: {}", said.trim())))
            }
        }
    }

    /// The question after all rows, each negative if it does not hold what was written.
    fn rows(&self) -> String {
        let bytes = self.history.row_bytes();
        // The shortest word has 6 letters.
        let expected = format!("left(repeat('row ' || id || ' ', {}), {bytes})", bytes / 6 + 1);
        let row = format!("CASE WHEN text = {expected} THEN id ELSE -id END");
        format!("SELECT '{ROWS}' || coalesce(string_agg(({row})::text, ',' ORDER BY id), '') FROM entry")
    }
}

impl Subject for Postgres {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn set_up(&self, place: &Path) -> Result<(), SubjectError> {
        let mut make = self.program("initdb")?;
        make.args([
            "-A",
            "trust",
            "-U",
            "postgres",
            "--data-checksums",
            "--no-sync",
            "--no-locale",
            "-E",
            "UTF8",
        ]);
        self.run_well(make.arg("--wal-segsize=1").arg("-D").arg(place.join(DATA)), "")?;
        // Without amcheck the first one fails, and the server goes on.
        let statements =
            "CREATE EXTENSION amcheck\nCREATE TABLE entry (id bigint PRIMARY KEY, text text NOT NULL)\n";
        self.run_well(&mut self.alone(place)?, statements)
    }

    fn work(&self, place: &Path, acknowledge: &mut dyn FnMut(u64)) -> Result<(), SubjectError> {
        let beside =
            tempfile::tempdir().map_err(|error| self.failed(format_args!("make a directory: {error}")))?;
        let control = |verb: &str| -> Result<Command, SubjectError> {
            let mut command = self.program("pg_ctl")?;
            command.args([verb, "-w", "-s", "-D"]).arg(place.join(DATA));
            Ok(command)
        };
        let set: Vec<String> = self.settings.iter().map(|set| format!("-c {set}")).collect();
        let socket = beside.path();
        let options = format!("-k {} -c listen_addresses= {}", socket.display(), set.join(" "));
        let mut start = control("start")?;
        start.arg("-l").arg(socket.join("log")).arg("-o").arg(options);
        // The server would keep our end of a pipe open.
        let status = start.stdout(Stdio::null()).stderr(Stdio::null()).status();
        if !status.map_err(|error| self.failed(format_args!("cannot run {start:?}: {error}")))?.success() {
            let log = std::fs::read_to_string(socket.join("log")).unwrap_or_default();
            let last = log.lines().last().unwrap_or("pg_ctl start fails");
            return Err(self.failed(format_args!("the server does not start: {last}")));
        }
        let worked = self.session(socket, acknowledge);
        self.run_well(control("stop")?.args(["-m", "fast"]), "")?;
        worked
    }

    fn check(&self, place: &Path, required: Option<u64>) -> Result<Outcome, SubjectError> {
        // After a power cut its process is gone; here another one may have its number.
        std::fs::remove_file(place.join(DATA).join("postmaster.pid")).unwrap_or_default();
        let mut command = self.alone(place)?;
        // Nothing is cut while it is checked.
        let output = self.run(command.args(["-c", "fsync=off"]), &format!("{LOOK}\n{}\n", self.rows()))?;
        let complaint = complaint(&output);
        if let Some(said) = complaint.as_ref().filter(|said| is_of_the_machine(said)) {
            return Err(self.failed(said));
        }
        let said = String::from_utf8_lossy(&output.stdout);
        let rows = said.split_once(&format!("\"{ROWS}")).and_then(|(_, rest)| rest.split('"').next());
        match (rows, complaint) {
            (Some(rows), None) if output.status.success() => {
                let rows = rows.split(',').filter_map(|row| row.parse::<i64>().ok());
                let rows: Vec<_> = rows.map(|row| (row.abs(), row > 0)).collect();
                Ok(self.history.judge(&rows, required))
            }
            (_, said) => {
                let said = said.unwrap_or_else(|| format!("no answer, {}", output.status));
                Ok(Outcome::of(FailureClass::Corrupt, format!("PostgreSQL says: {said}")))
            }
        }
    }
}

/// The program of the newest version, or of the path.
fn find(program: &str) -> Option<PathBuf> {
    let versions = std::fs::read_dir(VERSIONS).into_iter().flatten().flatten();
    let mut versions: Vec<(u32, PathBuf)> = versions
        .filter_map(|version| Some((version.file_name().to_str()?.parse().ok()?, version.path())))
        .collect();
    versions.sort();
    let newest = versions.into_iter().rev().map(|(_, path)| path.join("bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    newest
        .chain(std::env::split_paths(&path))
        .map(|directory| directory.join(program))
        .find(|path| path.is_file())
}

/// The first line of what a server complains of that ended a statement or itself; else the last line of errors.
fn complaint(output: &Output) -> Option<String> {
    let said = String::from_utf8_lossy(&output.stderr);
    let is_grave = |line: &&str| ["ERROR:", "FATAL:", "PANIC:"].iter().any(|level| line.contains(level));
    let last = || (!output.status.success()).then(|| said.lines().last()).flatten();
    said.lines().find(is_grave).or_else(last).map(str::to_owned)
}

/// Whether a server fails with it for other reasons than what it reads.
fn is_of_the_machine(said: &str) -> bool {
    ["shared memory", "No space left", "out of memory", "Out of memory", "Too many open files", "unshare:"]
        .iter()
        .any(|words| said.contains(words))
}

#[cfg(test)]
mod tests {
    use super::super::named;
    use super::*;

    #[test]
    fn what_was_committed_is_there_and_a_lost_log_is_corrupt() {
        if find("initdb").is_none() {
            plumb_testkit::skip("PostgreSQL is not installed");
            return;
        }
        let subject = named("postgres:inserts=4,deletes=1").unwrap();
        let place = tempfile::tempdir().unwrap();
        subject.set_up(place.path()).unwrap();
        assert_eq!(subject.check(place.path(), None).unwrap(), Outcome::Intact);
        assert_eq!(
            subject.check(place.path(), Some(1)).unwrap().class(),
            Some(FailureClass::LostAcknowledged)
        );
        let mut acknowledged = Vec::new();
        let copy = tempfile::tempdir().unwrap();
        let mut copy_at_4 = |number| {
            acknowledged.push(number);
            if number == 4 {
                let status =
                    Command::new("cp").arg("-a").arg(place.path().join(DATA)).arg(copy.path()).status();
                assert!(status.unwrap().success());
            }
        };
        subject.work(place.path(), &mut copy_at_4).unwrap();
        assert_eq!(acknowledged, [1, 2, 3, 4, 5]);
        assert_eq!(subject.check(place.path(), Some(5)).unwrap(), Outcome::Intact);
        // A copy while the server runs, with nothing going on, is what a cut leaves that loses nothing.
        let lost = tempfile::tempdir().unwrap();
        let status = Command::new("cp").arg("-a").arg(copy.path().join(DATA)).arg(lost.path()).status();
        assert!(status.unwrap().success());
        assert_eq!(subject.check(copy.path(), Some(4)).unwrap(), Outcome::Intact);
        assert_eq!(subject.check(copy.path(), Some(5)).unwrap().class(), Some(FailureClass::Resurrected));
        for segment in std::fs::read_dir(lost.path().join(DATA).join("pg_wal")).unwrap() {
            let path = segment.unwrap().path();
            if path.is_file() {
                std::fs::remove_file(path).unwrap();
            }
        }
        let outcome = subject.check(lost.path(), Some(4)).unwrap();
        assert_eq!(outcome.class(), Some(FailureClass::Corrupt), "{outcome:?}");
    }
}
