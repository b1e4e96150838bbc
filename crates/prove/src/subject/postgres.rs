//! Installed PostgreSQL: the transactions of a [`History`], each acknowledged when its commit has returned.
//!
//! The work is done by a server and one session of psql. Halfway there is a checkpoint, so that pages are
//! written whose later changes are in the log. A check starts a stand-alone server on the state, which
//! recovers it, checks the table and its index with amcheck, and reads the rows.
//!
//! PostgreSQL refuses to run as root, and its directory is accessible only to root. So it runs in a user
//! namespace in which root is called nobody; files remain root's.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use plumb_block::Nanos;
use plumb_report::document::proof::FailureClass;

use super::history::History;
use super::options::{Settings, Values};
use super::process::{Process, ProcessEnd};
use super::{AckBy, Outcome, Program, Subject};
use crate::error::{Error, Result};

/// Time limit for creating or checking a cluster.
const TIME_MAX: Nanos = Nanos::secs(300);
/// Text before the rows in the output of the check.
const ROWS: &str = "\"rows=";

/// Beginning of each line: the directory of the programs on Debian, and the start of a server.
const PROLOGUE: &str = r#"set -e
export LC_ALL=C PATH="$PATH:$(ls -dv /usr/lib/postgresql/*/bin 2>/dev/null | tail -n 1)"
command -v postgres >/dev/null || { echo 'PostgreSQL is not there: install postgresql'; exit 127; }
as=; [ "$(id -u)" != 0 ] || as='unshare --user --map-user=65534 --map-group=65534 --'
"#;

/// Without amcheck the first statement fails, and the server continues.
const SET_UP: &str = r"$as initdb -A trust -U postgres --data-checksums --no-sync --no-locale -E UTF8 --wal-segsize=1 -D data
$as postgres --single -D data SHARED postgres <<'END'
CREATE EXTENSION amcheck
CREATE TABLE entry (id bigint PRIMARY KEY, text text NOT NULL)
END";

/// Server that runs until psql has ended.
const WORK: &str = r#"$as postgres -D data -k "$PWD" -c listen_addresses= SHARED SETTINGS & server=$!
trap 'kill -INT $server; wait $server' EXIT
until pg_isready -q -h "$PWD"; do kill -0 $server; sleep 0.05; done
n=0
while [ $n -lt $((INSERTS + DELETES)) ]; do
    n=$((n + 1))
    if [ $n -le INSERTS ]; then echo "INSERT INTO entry SELECT id, TEXT FROM (SELECT $n AS id) AS row;"
    else echo "DELETE FROM entry WHERE id = $((n - INSERTS));"; fi
    echo '\! echo '$n' > "$PLUMB_ACK"'
    [ $n != $(((INSERTS + DELETES) / 2)) ] || echo 'CHECKPOINT;'
done | psql -X -q -v ON_ERROR_STOP=1 -h "$PWD" -U postgres -d postgres"#;

/// After a power cut the server is gone, but here another process may have its number. Nothing is cut during
/// the check. Rows with wrong contents are marked by a minus.
const CHECK: &str = r"rm -f data/postmaster.pid
$as postgres --single -D data -c fsync=off SHARED postgres <<'END'
DO $$ BEGIN IF EXISTS (SELECT FROM pg_extension WHERE extname = 'amcheck') THEN PERFORM bt_index_check('entry_pkey', true); IF EXISTS (SELECT FROM verify_heapam('entry')) THEN RAISE 'verify_heapam finds damage'; END IF; END IF; END $$
SELECT 'rows=' || coalesce(string_agg((CASE WHEN text = TEXT THEN id ELSE -id END)::text, ',' ORDER BY id), '') FROM entry
END";

/// PostgreSQL with some settings.
pub(super) struct Postgres {
    name: String,
    settings: String,
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

    pub(super) fn new(settings: &Settings<'_>) -> Result<Self> {
        let set = ["fsync", "synchronous_commit", "full_page_writes"];
        Ok(Self {
            name: settings.typed.to_owned(),
            settings: set.map(|key| format!("-c {key}={}", settings.word(key))).join(" "),
            history: History::new(settings)?,
        })
    }

    /// Returns the line for /bin/sh.
    fn line(&self, body: &str) -> String {
        let History { inserts, deletes, row_bytes } = self.history;
        // The shortest word has 6 letters.
        let text = format!("left(repeat('row ' || id || ' ', {}), {row_bytes})", row_bytes / 6 + 1);
        let body = body.replace("TEXT", &text).replace("SETTINGS", &self.settings);
        // A killed server must leave nothing in /dev/shm.
        let body = body.replace("SHARED", "-c dynamic_shared_memory_type=mmap");
        let body = body.replace("INSERTS", &inserts.to_string()).replace("DELETES", &deletes.to_string());
        format!("# {}\n{PROLOGUE}{body}", self.name)
    }

    /// Runs a line at `place` and returns its stdout.
    fn run(&self, line: &str, place: &Path) -> Result<(ProcessEnd, String)> {
        let process = Process {
            line,
            place,
            variable: ("PLUMB_ACK", "/dev/null".as_ref()),
            ack: AckBy::Stdout,
            user: None,
            timeout: TIME_MAX,
            stop: &[&AtomicBool::new(false)],
        };
        let mut said = Vec::new();
        let ended = process.run(&mut |bytes| said.extend_from_slice(bytes))?;
        Ok((ended, String::from_utf8_lossy(&said).into_owned()))
    }
}

impl Subject for Postgres {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn set_up(&self, place: &Path) -> Result<()> {
        let (ended, said) = self.run(&self.line(SET_UP), place)?;
        let last = said.lines().last().unwrap_or_default();
        if ended.status.success() {
            Ok(())
        } else {
            Err(Error::failed(&self.name, format!("{ended} {last}")))
        }
    }

    fn program(&self) -> Option<Program> {
        Some(Program::acknowledging(self.line(WORK)))
    }

    fn check(&self, place: &Path, required: Option<u64>) -> Result<Outcome> {
        let (ended, said) = self.run(&self.line(CHECK), place)?;
        let complaint = complaint(&ended);
        if let Some(said) = complaint.as_ref().filter(|said| is_of_the_machine(said)) {
            return Err(Error::failed(&self.name, said));
        }
        let rows = said.split_once(ROWS).and_then(|(_, rest)| rest.split('"').next());
        match (rows, complaint) {
            (Some(rows), None) if ended.status.success() => {
                let rows = rows.split(',').filter_map(|row| row.parse::<i64>().ok());
                let rows: Vec<_> = rows.map(|row| (row.abs(), row > 0)).collect();
                Ok(self.history.judge(&rows, required))
            }
            (_, said) => {
                let said = said.unwrap_or_else(|| format!("no answer, {}", ended.status));
                Ok(Outcome::failure(FailureClass::Corrupt, format!("PostgreSQL says: {said}")))
            }
        }
    }
}

/// Returns the first error of a server that ended a statement or the server; otherwise the last line of its
/// output.
fn complaint(ended: &ProcessEnd) -> Option<String> {
    let is_grave = |line: &&str| ["ERROR:", "FATAL:", "PANIC:"].iter().any(|level| line.contains(level));
    let last = || (!ended.status.success()).then(|| ended.output.lines().last()).flatten();
    ended.output.lines().find(is_grave).or_else(last).map(str::to_owned)
}

/// Returns true if the server failed for reasons other than the data it read.
fn is_of_the_machine(output: &str) -> bool {
    [
        "shared memory",
        "No space left",
        "out of memory",
        "Out of memory",
        "Too many open files",
        "unshare:",
        "not there:",
    ]
    .iter()
    .any(|words| output.contains(words))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::named;
    use super::*;

    #[test]
    fn what_was_committed_is_there_and_a_lost_log_is_corrupt() {
        let subject = named("postgres:inserts=4,deletes=1").unwrap();
        let place = tempfile::tempdir().unwrap();
        match subject.set_up(place.path()) {
            Err(error) if error.to_string().contains("is not there") => {
                return plumb_testkit::skip(&error.to_string());
            }
            done => done.unwrap(),
        }
        assert_eq!(subject.check(place.path(), None).unwrap(), Outcome::Intact);
        let class = |required| subject.check(place.path(), Some(required)).unwrap().class();
        assert_eq!(class(1), Some(FailureClass::LostAcknowledged));
        let control = tempfile::NamedTempFile::new().unwrap();
        let never = AtomicBool::new(false);
        let work = |line: &str| {
            let program = Program::acknowledging(line.to_owned());
            program.run(place.path(), control.path(), &mut |_| {}, TIME_MAX, &[&never])
        };
        let line = subject.program().unwrap().line;
        work(&line).unwrap();
        assert_eq!(fs::read_to_string(control.path()).unwrap(), "5\n");
        assert_eq!((class(5), class(6)), (None, Some(FailureClass::Resurrected)));
        let error = work(&line).unwrap_err();
        assert!(error.to_string().contains("duplicate key"), "{error}");
        for segment in fs::read_dir(place.path().join("data/pg_wal")).unwrap() {
            let path = segment.unwrap().path();
            if path.is_file() {
                fs::remove_file(path).unwrap();
            }
        }
        assert_eq!(class(4), Some(FailureClass::Corrupt));
    }
}
