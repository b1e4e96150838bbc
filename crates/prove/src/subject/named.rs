//! Built-in subjects by the names that a user types: `sqlite:journal=delete,synchronous=full`,
//! `files:rename-fsync-dirsync`.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;

use super::Subject;
use super::files::Files;
use super::fsck::Fsck;
use super::options::{Settings, Values};
use super::postgres::Postgres;
use super::redb::Redb;
use super::sqlite::Sqlite;
use crate::error::{Error, Result};

/// Kind of a built-in subject.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    /// Name before the colon.
    pub name: &'static str,
    /// Description in one line.
    pub about: &'static str,
    /// Options after the colon, separated by commas: `journal=wal`, or the bare value of the first option.
    pub options: &'static [(&'static str, Values)],
    make: fn(&Settings<'_>) -> Result<Arc<dyn Subject>>,
}

/// All built-in subjects.
pub const SUBJECTS: &[Kind] = &[
    Kind {
        name: "sqlite",
        about: "SQLite in process: inserts, then deletes, one transaction each",
        options: Sqlite::OPTIONS,
        make: |settings| Ok(Arc::new(Sqlite::new(settings)?)),
    },
    Kind {
        name: "redb",
        about: "redb in process: inserts, then deletes, one transaction each",
        options: Redb::OPTIONS,
        make: |settings| Ok(Arc::new(Redb::new(settings)?)),
    },
    Kind {
        name: "files",
        about: "plain files, with and without the syncs that they need",
        options: Files::OPTIONS,
        make: |settings| Ok(Arc::new(Files::new(settings)?)),
    },
    Kind {
        name: "fsck",
        about: "the file system alone: all that can be done to files, and what its own checker says (e2fsck, xfs_repair, btrfs check, fsck.f2fs)",
        options: &[],
        make: |settings| Ok(Arc::new(Fsck::new(settings)?)),
    },
    Kind {
        name: "postgres",
        about: "the PostgreSQL that is installed: inserts, then deletes, one transaction each, and a checkpoint halfway",
        options: Postgres::OPTIONS,
        make: |settings| Ok(Arc::new(Postgres::new(settings)?)),
    },
];

/// Lists each kind of subject in the form to type, with its description.
fn known_subjects() -> String {
    let mut text = String::new();
    for kind in SUBJECTS {
        let options: Vec<String> =
            kind.options.iter().map(|(key, values)| format!("{key}={values}")).collect();
        let colon = if options.is_empty() { "" } else { ":" };
        writeln!(text, "  {}{colon}{}\n      {}", kind.name, options.join(","), kind.about)
            .unwrap_or_default();
    }
    text
}

/// Returns the subject with a name.
///
/// # Errors
/// If the subject or an option does not exist.
pub fn named(typed: &str) -> Result<Arc<dyn Subject>> {
    let unknown = |because: String| {
        Error::usage(format!("`{typed}` is not a subject: {because}. There are:\n{}", known_subjects()))
    };
    let (name, given) = typed.split_once(':').unwrap_or((typed, ""));
    let kind = SUBJECTS.iter().find(|kind| kind.name == name);
    let kind = kind.ok_or_else(|| unknown(format!("there is no `{name}`")))?;
    let mut set = HashMap::new();
    for item in given.split(',').filter(|item| !item.is_empty()) {
        let first = kind.options.first().map_or("", |(key, _)| key);
        let (key, value) = item.split_once('=').unwrap_or((first, item));
        let option = kind.options.iter().find(|(known, _)| *known == key);
        let (key, values) = option.ok_or_else(|| unknown(format!("{name} has no option `{key}`")))?;
        if !values.allow(value) {
            return Err(unknown(format!("{key} cannot be `{value}`")));
        }
        if set.insert(*key, value.to_owned()).is_some() {
            return Err(unknown(format!("{key} is given twice")));
        }
    }
    for (key, values) in kind.options {
        set.entry(key).or_insert_with(|| values.default());
    }
    (kind.make)(&Settings::new(typed, set)).map_err(|error| unknown(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_is_known_by_what_was_typed() {
        for typed in [
            "sqlite",
            "sqlite:journal=wal,synchronous=normal",
            "files:mkdir-dirsync",
            "sqlite:inserts=3,deletes=0",
        ] {
            assert_eq!(named(typed).unwrap().name(), typed);
        }
    }

    #[test]
    fn the_refusal_of_a_wrong_name_lists_all_subjects() {
        for (typed, because) in [
            ("sqlit", "there is no `sqlit`"),
            ("sqlite:jurnal=wal", "sqlite has no option `jurnal`"),
            ("sqlite:journal=wel", "journal cannot be `wel`"),
            ("sqlite:inserts=0", "inserts cannot be `0`"),
            ("sqlite:inserts=3,deletes=3", "deletes=3 is not less than inserts=3"),
            ("files:mkdir", "protocol cannot be `mkdir`"),
            ("sqlite:inserts=x", "inserts cannot be `x`"),
            ("sqlite:wal,journal=wal", "journal is given twice"),
        ] {
            let text = named(typed).err().unwrap().to_string();
            assert!(text.starts_with(&format!("`{typed}` is not a subject: {because}. ")), "{text}");
            assert!(text.contains("sqlite:journal=delete|truncate"), "{text}");
        }
    }
}
