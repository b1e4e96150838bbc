//! sqlite-rollback and sqlite-wal: the real SQLite.

use plumb_block::Nanos;

use crate::profile::{Extent, Profile, Provenance, SqliteWork, Variant, Work};
use crate::sqlite::{Journal, Synchronous};

const SOURCE: &str = "It is SQLite itself, the version that is built into plumb. Estimated: the table (a text of 100 \
                      characters and an indexed number) and one row for each transaction.";

const LEAVES_OUT: &str = "Reads, several connections, larger transactions. The SQLite in plumb syncs by fsync, where \
                          distributions build it to use fdatasync: as many syncs, and where the log is written over \
                          rather than extended each may cost more. What SQLite reads, writes and syncs is not seen \
                          from here: the storage side shows it.";

pub(super) static ROLLBACK: Profile = Profile {
    name: "sqlite-rollback",
    summary: "the real SQLite with a rollback journal: 4 syncs for each one-row insert",
    pattern: "journal_mode=DELETE, 4 KiB pages, a table with one index, one row for each transaction. full: \
              synchronous=FULL; each COMMIT syncs the journal twice, its directory and the database, and then \
              removes the journal without a sync: a power cut may bring it back and take the last transaction away. \
              extra: synchronous=EXTRA syncs the directory once more.",
    provenance: Provenance::Traced,
    source: SOURCE,
    leaves_out: LEAVES_OUT,
    criteria: &[],
    variants: &[
        Variant { name: "full", summary: "synchronous=FULL, SQLite's default" },
        Variant { name: "extra", summary: "synchronous=EXTRA: durable when COMMIT returns" },
    ],
    extent: Extent::Time(Nanos::secs(30)),
    work: Work::Sqlite(SqliteWork {
        journal: |variant| match variant {
            "extra" => Journal::Delete(Synchronous::Extra),
            _ => Journal::Delete(Synchronous::Full),
        },
    }),
};

pub(super) static WAL: Profile = Profile {
    name: "sqlite-wal",
    summary: "the real SQLite with a write-ahead log: 1 sync for each one-row insert, or none",
    pattern: "journal_mode=WAL, 4 KiB pages, a table with one index, one row for each transaction. A COMMIT appends \
              two frames of 24 + 4,096 B. full: synchronous=FULL syncs the log at each COMMIT. normal: \
              synchronous=NORMAL syncs at checkpoints only (about every 1,000 pages): a power cut takes away what \
              was committed since.",
    provenance: Provenance::Traced,
    source: SOURCE,
    leaves_out: LEAVES_OUT,
    criteria: &[],
    variants: &[
        Variant { name: "full", summary: "synchronous=FULL: durable when COMMIT returns" },
        Variant { name: "normal", summary: "synchronous=NORMAL: visible when COMMIT returns, durable later" },
    ],
    extent: Extent::Time(Nanos::secs(30)),
    work: Work::Sqlite(SqliteWork {
        journal: |variant| match variant {
            "normal" => Journal::Wal(Synchronous::Normal),
            _ => Journal::Wal(Synchronous::Full),
        },
    }),
};
