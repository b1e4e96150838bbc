//! Settings of known programs that affect what survives a power cut, for users who cannot change the calls of
//! such a program.

use plumb_report::document::proof::Failure;

use crate::session::RecordedWork;

/// Program identified by the names of its files.
struct KnownProgram {
    /// Substrings, any of which occurs in the name of a file that only this program creates.
    files: &'static [&'static str],
    advice: &'static str,
}

/// Known programs. The first match is used.
const KNOWN: [KnownProgram; 8] = [
    KnownProgram {
        files: &["global/pg_control", "pg_wal/"],
        advice: "PostgreSQL: leave `fsync`, `full_page_writes` and `synchronous_commit` on",
    },
    KnownProgram {
        files: &[".git/objects/", ".git/refs/", ".git/index", "HEAD.lock"],
        advice: "git: `git config core.fsync all` syncs all files that git writes",
    },
    KnownProgram {
        files: &["appendonly", "temp-rewriteaof", "dump.rdb"],
        advice: "Redis: `appendonly yes` with `appendfsync always` syncs each write before its answer",
    },
    KnownProgram {
        files: &["ib_logfile", "#innodb_redo/", "ibdata1"],
        advice: "MySQL: `innodb_flush_log_at_trx_commit=1`, `sync_binlog=1` and `innodb_doublewrite=ON`",
    },
    KnownProgram { files: &["WiredTiger"], advice: "MongoDB: write with the write concern `j: true`" },
    KnownProgram {
        files: &["MANIFEST-0", "OPTIONS-0"],
        advice: "LevelDB and RocksDB: write with `WriteOptions::sync = true`",
    },
    KnownProgram {
        files: &["data.mdb"],
        advice: "LMDB: open without MDB_NOSYNC, MDB_NOMETASYNC and MDB_MAPASYNC",
    },
    KnownProgram {
        files: &["-journal", "-wal"],
        advice: "SQLite: with a rollback journal `PRAGMA synchronous=EXTRA` syncs the directory, too; with `journal_mode=WAL` \
                 `PRAGMA synchronous=FULL` syncs each commit",
    },
];

/// Returns the advice for the program identified by the files in these failures, or in the calls of this
/// work.
pub(super) fn settings(failures: &[Failure], recorded: &RecordedWork) -> Option<String> {
    let parts =
        failures.iter().flat_map(|failure| failure.minimal.dropped.iter().chain(&failure.minimal.torn));
    let files = parts.filter_map(|part| part.file.clone());
    let calls =
        recorded.calls.iter().filter_map(|call| Some(call.label.split_once('(')?.1.split_once(") by")?.0));
    let names: Vec<String> = files.chain(calls.map(str::to_owned)).collect();
    let has =
        |known: &&KnownProgram| names.iter().any(|name| known.files.iter().any(|file| name.contains(file)));
    KNOWN.iter().find(has).map(|known| format!("a setting of {}", known.advice))
}

#[cfg(test)]
mod tests {
    use plumb_block::Bytes;
    use plumb_report::document::proof::TimelineItem;

    use super::*;
    use crate::recording::Recording;

    #[test]
    fn a_program_is_known_by_the_files_of_its_calls() {
        let advice = |label: &str| {
            let recording = Recording::of_blank(Bytes(4096), Bytes(4096));
            let mut recorded = RecordedWork::new(recording, 0, 0);
            recorded.calls = vec![TimelineItem { label: label.to_owned(), ..TimelineItem::default() }];
            settings(&[], &recorded)
        };
        for (label, program) in [
            ("unlink(t.db-journal) by sqlite3 7", "SQLite"),
            ("write(.git/objects/ab/tmp_obj_1) by git 7", "git"),
            ("fdatasync(pg_wal/000000010000000000000001) by postgres 7", "PostgreSQL"),
            ("write(db/MANIFEST-000001) by db_bench 7", "LevelDB"),
        ] {
            assert!(advice(label).unwrap().contains(program), "{label}");
        }
        assert_eq!(advice("write(document) by git 7"), None);
    }
}
