//! Test of the unsynced operations of real programs, from their calls under strace.

use std::path::Path;
use std::process::Command;

use plumb_prove::trace::{Audit, FileNames, Lapse, Lines};

/// Lapses, and the interfaces whose writes were not visible.
type AuditResult = (Vec<(Lapse, String)>, Vec<&'static str>);

/// Returns the lapses of a program in an empty directory with their file names, and the interfaces whose
/// writes were not visible; `None` without the programs.
fn lapses(program: &[&str]) -> Option<AuditResult> {
    let directory = tempfile::tempdir().unwrap();
    lapses_in(directory.path(), program)
}

fn lapses_in(root: &Path, program: &[&str]) -> Option<AuditResult> {
    let root = root.canonicalize().unwrap();
    let names = FileNames::beneath(&root);
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
    Some(audit(trace.path(), &root, &names))
}

fn audit(trace: &Path, root: &Path, names: &FileNames) -> AuditResult {
    let mut audit = Audit::beneath(root, names);
    let mut lines = Lines::default();
    for line in std::fs::read_to_string(trace).unwrap().lines() {
        lines.parse(line).iter().for_each(|call| audit.observe(call));
    }
    let name = |path: &Path| path.strip_prefix(root).unwrap().display().to_string();
    let findings = audit.findings().into_iter().map(|finding| (finding.lapse, name(&finding.path))).collect();
    (findings, audit.not_seen().keys().copied().collect())
}

fn python(script: &str, expected: &[(Lapse, &str)]) {
    let directory = tempfile::tempdir().unwrap();
    python_in(directory.path(), script, expected);
}

fn python_in(root: &Path, script: &str, expected: &[(Lapse, &str)]) {
    let Some((found, _)) = lapses_in(root, &["python3", "-IS", "-c", script]) else {
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
    // Not sync(2), which would write back the data of other tests.
    python(&format!("{MAKE} import ctypes; ctypes.CDLL(None).syncfs(f)"), &[]);
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

/// Runs a script in a directory in which the file `old` holds five bytes, `empty` holds none, `other` is
/// another name of `old`, and `d` is a directory with the file `x`. Everything is durable.
fn in_filled_directory(script: &str, expected: &[(Lapse, &str)]) {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    std::fs::write(root.join("old"), b"12345").unwrap();
    std::fs::write(root.join("empty"), b"").unwrap();
    std::fs::hard_link(root.join("old"), root.join("other")).unwrap();
    std::fs::create_dir(root.join("d")).unwrap();
    std::fs::write(root.join("d/x"), b"1").unwrap();
    python_in(root, &format!("import os; {script}"), expected);
}

#[test]
fn opening_a_file_that_exists_changes_no_directory() {
    let open = |name: &str, flags: &str| format!("f = os.open('{name}', os.O_CREAT | os.O_RDWR{flags})");
    let truncated = Lapse::DataNotSynced { bytes: 0 };
    in_filled_directory(&open("old", ""), &[]);
    in_filled_directory(&open("d/../old", ""), &[]);
    in_filled_directory(&format!("{}; os.write(f, b'1'); os.fsync(f)", open("old", "")), &[]);
    in_filled_directory(&open("empty", " | os.O_TRUNC"), &[]);
    in_filled_directory(&open("old", " | os.O_TRUNC"), &[(truncated.clone(), "old")]);
    in_filled_directory(&format!("{}; os.fsync(f)", open("old", " | os.O_TRUNC")), &[]);
    in_filled_directory("os.truncate('empty', 0)", &[]);
    in_filled_directory("os.truncate('old', 0)", &[(truncated, "old")]);
    // Another file that takes the name is new.
    let again = format!("os.unlink('old'); {SYNC_DIRECTORY}; {}", open("old", ""));
    in_filled_directory(&again, &[(Lapse::DirectoryNotSynced("open"), "old")]);
}

#[test]
fn calls_that_fail_or_do_nothing_leave_nothing() {
    let failing = |call: &str| format!("\ntry: {call}\nexcept OSError: pass\n");
    in_filled_directory(&failing("os.open('old', os.O_CREAT | os.O_EXCL | os.O_RDWR)"), &[]);
    in_filled_directory(&failing("os.mkdir('d')"), &[]);
    in_filled_directory(&failing("os.link('empty', 'old')"), &[]);
    in_filled_directory(&failing("os.rmdir('d')"), &[]);
    in_filled_directory("os.rename('old', 'old'); os.rename('old', 'other'); os.rename('d', 'd')", &[]);
    let written = "f = os.open('old', os.O_RDWR); os.write(f, b'12'); os.rename('old', 'old')";
    in_filled_directory(written, &[(Lapse::DataNotSynced { bytes: 2 }, "old")]);
    in_filled_directory("os.write(os.open('old', os.O_RDWR), b'')", &[]);
}

#[test]
fn what_a_program_makes_and_removes_again_is_not_missed() {
    python("import os; os.mkdir('t'); os.rmdir('t'); os.symlink('a', 'b'); os.unlink('b')", &[]);
    python(&format!("{MAKE} os.link('new', 'b'); os.unlink('new'); os.unlink('b'); os.fsync(f)"), &[]);
    python(&format!("{MAKE} os.rename('new', 'b'); os.unlink('b')"), &[(Lapse::RenamedBeforeSync, "b")]);
    in_filled_directory(&format!("os.unlink('d/x'); os.rmdir('d'); {SYNC_DIRECTORY}"), &[]);
    let removed = Lapse::DirectoryNotSynced("unlink");
    in_filled_directory("os.rename('old', 'b'); os.unlink('b')", &[(removed.clone(), "b")]);
    let replaced = "f = os.open('t', os.O_CREAT | os.O_RDWR); os.rename('t', 'old'); os.unlink('old')";
    in_filled_directory(replaced, &[(removed, "old")]);
}

#[test]
fn what_is_in_a_directory_is_renamed_with_it() {
    let make = "import os; os.mkdir('t'); f = os.open('t/a', os.O_CREAT | os.O_RDWR); os.write(f, b'1')";
    let sync = |name: &str| format!("os.fsync(os.open('{name}', os.O_RDONLY))");
    let rest = format!("os.rename('t', 'd'); {}; {SYNC_DIRECTORY}", sync("d"));
    python(&format!("{make}; os.fsync(f); {rest}"), &[]);
    python(&format!("{make}; {rest}; {}", sync("d/a")), &[]);
    python(&format!("{make}; {rest}"), &[(Lapse::DataNotSynced { bytes: 1 }, "d/a")]);
    let without = format!("{make}; os.fsync(f); os.rename('t', 'd'); {SYNC_DIRECTORY}");
    python(&without, &[(Lapse::DirectoryNotSynced("open"), "d/a")]);
}

#[test]
fn files_that_change_their_names_are_told_apart() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let trace = root.join("trace");
    let lines = [
        format!("1 1.0 write(3<{}/a>, \"\"..., 1) = 1\n", root.display()),
        format!("1 2.0 renameat2(3<{0}>, \"a\", 3<{0}>, \"b\", RENAME_EXCHANGE) = 0\n", root.display()),
        format!("1 3.0 fsync(3<{}>) = 0\n", root.display()),
        format!("1 4.0 fsync(3<{}/b>) = 0\n", root.display()),
    ];
    let found = |lines: String| {
        std::fs::write(&trace, lines).unwrap();
        audit(&trace, root, &FileNames::default()).0
    };
    let unsynced = (Lapse::DataNotSynced { bytes: 1 }, "b".to_owned());
    let renamed = (Lapse::RenamedBeforeSync, "b".to_owned());
    assert_eq!(found(lines[..3].concat()), [unsynced, renamed.clone()]);
    assert_eq!(found(lines.concat()), [renamed]);
}
