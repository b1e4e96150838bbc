//! Test of what real programs leave to luck, by the calls that strace sees.

use std::path::Path;
use std::process::Command;

use plumb_prove::trace::{Audit, Lapse, Lines};

/// The lapses, and the ways to write that were not seen.
type AuditResult = (Vec<(Lapse, String)>, Vec<&'static str>);

/// The lapses of a program with their file names, and the ways to write that were not seen; `None` without
/// the programs.
fn lapses(program: &[&str]) -> Option<AuditResult> {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    let trace = tempfile::NamedTempFile::new().unwrap();
    let traced = Command::new("strace")
        .args([
            "-f",
            "-y",
            "-ttt",
            "-s",
            "0",
            "-e",
            "trace=%file,%desc,sync,syncfs,msync,io_uring_setup",
            "-o",
        ])
        .arg(trace.path())
        .args(program)
        .current_dir(&root)
        .output();
    let is_there = |output: &std::process::Output| output.status.success();
    let output = traced.ok().filter(is_there)?;
    assert!(output.status.success());
    Some(audit(trace.path(), &root))
}

fn audit(trace: &Path, root: &Path) -> AuditResult {
    let mut audit = Audit::beneath(root);
    let mut lines = Lines::default();
    for line in std::fs::read_to_string(trace).unwrap().lines() {
        lines.parse(line).iter().for_each(|call| audit.take(call));
    }
    let name = |path: &Path| path.strip_prefix(root).unwrap().display().to_string();
    let findings = audit.findings().into_iter().map(|finding| (finding.lapse, name(&finding.path))).collect();
    (findings, audit.not_seen().keys().copied().collect())
}

fn python(script: &str, expected: &[(Lapse, &str)]) {
    let Some((found, _)) = lapses(&["python3", "-c", script]) else {
        return plumb_testkit::skip("strace or python3 is missing");
    };
    let found: Vec<(Lapse, &str)> =
        found.iter().map(|(lapse, name)| (lapse.clone(), name.as_str())).collect();
    assert_eq!(found, expected, "{script}");
}

const MAKE: &str = "import os; f = os.open('new', os.O_CREAT | os.O_WRONLY); os.write(f, b'12345'); ";

#[test]
fn a_file_without_fsync_and_without_that_of_its_directory() {
    let created = Lapse::DirectoryNotSynced("open");
    python(MAKE, &[(created.clone(), "new"), (Lapse::DataNotSynced { bytes: 5 }, "new")]);
    python(&format!("{MAKE} os.fsync(f)"), &[(created, "new")]);
    python(&format!("{MAKE} os.fsync(f); os.fsync(os.open('.', os.O_RDONLY))"), &[]);
    python(&format!("{MAKE} os.sync()"), &[]);
}

#[test]
fn a_rename_needs_the_data_before_and_the_directory_after() {
    let renamed = Lapse::DirectoryNotSynced("rename");
    python(&format!("{MAKE} os.fsync(f); os.rename('new', 'old')"), &[(renamed.clone(), "old")]);
    let directory = "os.fsync(os.open('.', os.O_RDONLY))";
    python(&format!("{MAKE} os.fsync(f); os.rename('new', 'old'); {directory}"), &[]);
    python(
        &format!("{MAKE} os.rename('new', 'old'); {directory}; os.fsync(f)"),
        &[(Lapse::RenamedBeforeSync, "old")],
    );
}

#[test]
fn a_directory_below_and_names_relative_to_descriptors() {
    python(
        "import os; os.mkdir('d'); d = os.open('d', os.O_RDONLY); f = os.open('x', os.O_CREAT | os.O_WRONLY | \
         os.O_DSYNC, dir_fd=d); os.write(f, b'1'); os.chdir('d'); os.link('x', 'y'); os.unlink('x'); os.fsync(d)",
        &[(Lapse::DirectoryNotSynced("mkdir"), "d")],
    );
}

#[test]
fn sqlite_leaves_the_removal_of_its_journal_to_luck() {
    let sql =
        "pragma journal_mode=delete; pragma synchronous=full; create table t(a); insert into t values(1);";
    let Some((found, _)) = lapses(&["sqlite3", "t.db", sql]) else {
        return plumb_testkit::skip("strace or sqlite3 is missing");
    };
    let journal = (Lapse::DirectoryNotSynced("unlink"), "t.db-journal".to_owned());
    assert!(found.contains(&journal), "{found:?}");
    let extra = sql.replace("full", "extra");
    let (found, _) = lapses(&["sqlite3", "t.db", &extra]).unwrap();
    assert_eq!(found, []);
}

const SYNC_DIRECTORY: &str = "os.fsync(os.open('.', os.O_RDONLY))";

#[test]
fn a_file_with_several_names_is_one_file() {
    let moved = "os.link('new', 'old'); os.unlink('new')";
    let unsynced = Lapse::DataNotSynced { bytes: 5 };
    python(&format!("{MAKE} {moved}; {SYNC_DIRECTORY}"), &[(unsynced.clone(), "old")]);
    python(&format!("{MAKE} {moved}; os.fsync(f); {SYNC_DIRECTORY}"), &[]);
    python(
        &format!("{MAKE} os.link('new', 'old'); {SYNC_DIRECTORY}; os.fsync(os.open('old', os.O_RDWR))"),
        &[],
    );
    python(&format!("{MAKE} os.link('new', 'old'); {SYNC_DIRECTORY}"), &[(unsynced, "new")]);
}

#[test]
fn a_file_that_gets_its_name_late_is_synced_before_or_after() {
    let make = "import os; f = os.open('.', os.O_TMPFILE | os.O_RDWR); os.write(f, b'12345'); ";
    let link =
        "os.link(f'/proc/self/fd/{f}', 'named', src_dir_fd=os.open('/', os.O_RDONLY), follow_symlinks=True)";
    python(make, &[]);
    python(&format!("{make} {link}; {SYNC_DIRECTORY}"), &[(Lapse::DataNotSynced { bytes: 5 }, "named")]);
    python(&format!("{make} os.fsync(f); {link}; {SYNC_DIRECTORY}"), &[]);
    python(&format!("{make} {link}; {SYNC_DIRECTORY}; os.fsync(f)"), &[]);
}

#[test]
fn each_descriptor_has_its_own_way_to_write() {
    let make = "import os; f = os.open('new', os.O_CREAT | os.O_WRONLY | os.O_DSYNC); g = os.open('new', os.O_WRONLY); ";
    python(&format!("{make} os.write(f, b'1'); {SYNC_DIRECTORY}"), &[]);
    python(
        &format!("{make} os.write(f, b'1'); os.write(g, b'12'); {SYNC_DIRECTORY}"),
        &[(Lapse::DataNotSynced { bytes: 2 }, "new")],
    );
    python(
        &format!("{make} h = os.dup(g); os.write(h, b'1'); {SYNC_DIRECTORY}"),
        &[(Lapse::DataNotSynced { bytes: 1 }, "new")],
    );
}

#[test]
fn a_size_that_changes_by_a_path_is_not_durable() {
    python(
        &format!("{MAKE} os.fsync(f); {SYNC_DIRECTORY}; os.truncate('new', 2)"),
        &[(Lapse::DataNotSynced { bytes: 0 }, "new")],
    );
}
