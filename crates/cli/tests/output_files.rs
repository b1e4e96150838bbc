//! Tests of the output files of every command: nothing is overwritten without `--overwrite`, and only regular
//! files are ever replaced. They guard against `plumb policy plan -o /dev/full`, which replaced the device
//! node with a regular file, and `plumb report -o`, which replaced any file.

use std::fs;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::OnceLock;

use tempfile::TempDir;

use crate::common::{document, entries, exited, plumb, said, scratch};
use crate::load_support::{LoopDevice, stderr, system};

/// Command line with an output file.
struct Case {
    /// Words of the command, in which `OUT` is the output file, `RUN` a recorded run and `PLAN` a plan.
    words: &'static str,
    /// Name of the output file, which some commands choose themselves.
    file: &'static str,
    /// True if the whole command can run here quickly, rather than only be refused.
    runs: bool,
}

const fn case(words: &'static str) -> Case {
    Case { words, file: "out", runs: true }
}

const CASES: [Case; 16] = [
    case("report RUN --format html -o OUT"),
    case("report RUN --format markdown -o OUT"),
    case("report RUN --format json -o OUT"),
    case("report RUN --format csv -o OUT"),
    case("report RUN --format prometheus -o OUT"),
    case("report RUN --format fio -o OUT"),
    case("report RUN -o OUT"),
    case("policy plan off --all --out OUT"),
    case("policy verify PLAN --prometheus-file OUT"),
    case("policy watch --all --looks 1 --prometheus-file OUT"),
    case("fio --name=x --filename=f --size=64k --rw=write --output=OUT --no-record"),
    case("fio --name=x --filename=f --size=64k --rw=write --output=OUT --output-format=json --no-record"),
    Case {
        file: "log_bw.1.log",
        ..case(
            "fio --name=x --filename=f --size=64k --rw=write --runtime=300ms --time_based --log_avg_msec=100 --write_bw_log=log --no-record",
        )
    },
    Case { file: "plumb.1", ..case("manual .") },
    Case { runs: false, ..case("prove app --subject files:rename-fsync-dirsync --keep OUT --no-record") },
    Case { runs: false, ..case("prove app --subject files:rename-fsync-dirsync --junit OUT --no-record") },
];

/// Returns a recorded run and a plan, created once.
fn inputs() -> &'static (TempDir, PathBuf, PathBuf) {
    static INPUTS: OnceLock<(TempDir, PathBuf, PathBuf)> = OnceLock::new();
    INPUTS.get_or_init(|| {
        let place = scratch();
        let (run, plan) = (place.path().join("run"), place.path().join("plan.json"));
        let load = ["load", "sim:consumer-nvme-ssd", "--count", "100", "--json", "--out"];
        document(&plumb().args(load).arg(&run).output().unwrap());
        let planned = plumb().args(["policy", "plan", "off", "--all", "--out"]).arg(&plan).output().unwrap();
        assert!(plan.exists(), "{}", said(&planned));
        (place, run, plan)
    })
}

/// Directory with one command and its output file.
struct Try<'a> {
    case: &'a Case,
    here: TempDir,
}

impl<'a> Try<'a> {
    fn new(case: &'a Case) -> Self {
        Self { case, here: scratch() }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.here.path().join(name)
    }

    fn file(&self) -> PathBuf {
        self.at(self.case.file)
    }

    fn run(&self, more: &[&str]) -> Output {
        let (_, run, plan) = inputs();
        let words = self.case.words.split(' ').map(|word| match word {
            "RUN" => run.display().to_string(),
            "PLAN" => plan.display().to_string(),
            word => word.replace("OUT", self.case.file),
        });
        plumb().args(words).args(more).current_dir(self.here.path()).output().unwrap()
    }

    /// Runs the command, and expects a refusal that names the file, without changes or leftovers.
    fn is_refused(&self, what: &str, more: &[&str]) {
        let before = (entries(self.here.path()), seen(&self.file()));
        let output = self.run(more);
        let context = format!("{} onto {what} {more:?}: {}", self.case.words, said(&output));
        assert_eq!(output.status.code(), Some(4), "{context}");
        assert!(stderr(&output).contains(self.case.file), "{context}");
        assert_eq!((entries(self.here.path()), seen(&self.file())), before, "{context}");
    }

    /// Runs the command, expects that it writes its result, and returns the result.
    fn writes(&self, what: &str, more: &[&str]) -> Vec<u8> {
        let output = self.run(more);
        let context = format!("{} onto {what} {more:?}: {}", self.case.words, said(&output));
        let refuses_the_file = stderr(&output).contains("--overwrite to replace");
        assert!(!refuses_the_file && output.status.code().is_some_and(|code| code < 5), "{context}");
        let written = fs::read(self.file()).unwrap();
        assert!(!written.is_empty(), "{context}");
        written
    }
}

/// State of a file that a test compares.
#[derive(Debug, PartialEq, Eq)]
struct FileState {
    /// Type and permissions.
    mode: u32,
    /// Number of a device node.
    device: u64,
    /// Target of a symbolic link.
    target: Option<PathBuf>,
    /// Contents of a regular file.
    contents: Option<Vec<u8>>,
}

/// Returns the present state of `path`.
fn seen(path: &Path) -> Option<FileState> {
    let found = path.symlink_metadata().ok()?;
    let contents = path.metadata().is_ok_and(|found| found.is_file()).then(|| fs::read(path).unwrap());
    Some(FileState { mode: found.mode(), device: found.rdev(), target: fs::read_link(path).ok(), contents })
}

fn mknod(path: &Path, words: &[&str]) -> bool {
    let path = path.to_str().unwrap();
    match system("mknod", &[&[path], words].concat()) {
        Ok(_) => true,
        Err(reason) => {
            plumb_testkit::skip(&reason);
            false
        }
    }
}

#[test]
fn what_plumb_did_not_write_is_replaced_only_with_overwrite() {
    for case in &CASES {
        let run = Try::new(case);
        fs::write(run.file(), "precious").unwrap();
        run.is_refused("a user's file", &[]);
        // Through a symbolic link it is the same file, and the link stays.
        fs::rename(run.file(), run.at("theirs")).unwrap();
        symlink("theirs", run.file()).unwrap();
        run.is_refused("a link to a user's file", &[]);
        assert_eq!(fs::read(run.at("theirs")).unwrap(), b"precious");
        if !case.runs {
            continue;
        }
        fs::set_permissions(run.at("theirs"), fs::Permissions::from_mode(0o640)).unwrap();
        assert_ne!(run.writes("a user's file", &["--overwrite"]), b"precious");
        assert!(run.file().is_symlink(), "{}: the link was replaced", case.words);
        assert_eq!(fs::metadata(run.at("theirs")).unwrap().mode() & 0o777, 0o640, "{}", case.words);
    }
}

#[test]
fn what_is_in_use_or_holds_swap_space_is_replaced_by_no_option() {
    for case in CASES.iter().filter(|case| case.runs) {
        let run = Try::new(case);
        // A server of a cache or a drive locks its file like this.
        fs::write(run.file(), "the log of a cache").unwrap();
        let server = fs::File::open(run.file()).unwrap();
        rustix::fs::flock(&server, rustix::fs::FlockOperation::LockExclusive).unwrap();
        run.is_refused("a file that is served", &["--overwrite"]);
        drop(server);
        let mut swap = vec![0; 64 << 10];
        swap[4086..4096].copy_from_slice(b"SWAPSPACE2");
        fs::write(run.file(), swap).unwrap();
        run.is_refused("swap space", &["--overwrite"]);
    }
}

#[test]
fn a_recording_and_what_a_command_reads_are_never_its_output() {
    let (_, run, plan) = inputs();
    let text = |path: &Path| path.display().to_string();
    let result = run.join("result.json");
    let verify = format!("policy verify {0} --prometheus-file {0}", text(plan));
    for (words, file) in [
        (format!("report {} -o {}", text(run), text(&result)), result.as_path()),
        (format!("report {} --format json -o {}", text(run), text(&result)), &result),
        (verify.clone(), plan),
        (format!("{verify} --overwrite"), plan),
    ] {
        let before = fs::read(file).unwrap();
        let output = plumb().args(words.split(' ')).output().unwrap();
        assert_eq!(output.status.code(), Some(4), "{words}: {}", said(&output));
        assert_eq!(fs::read(file).unwrap(), before, "{words}");
    }
}

#[test]
fn new_empty_and_earlier_results_are_written_without_a_word() {
    for case in CASES.iter().filter(|case| case.runs) {
        let run = Try::new(case);
        run.writes("nothing", &[]);
        run.writes("an earlier result", &[]);
        let with_notes = [fs::read(run.file()).unwrap(), b"my notes\n".to_vec()].concat();
        fs::write(run.file(), with_notes).unwrap();
        run.is_refused("an earlier result with notes", &[]);
        fs::write(run.file(), "").unwrap();
        run.writes("an empty file", &[]);
    }
}

#[test]
fn what_is_not_a_regular_file_is_never_replaced() {
    for case in &CASES {
        for more in [&[][..], &["--overwrite"]] {
            let run = Try::new(case);
            fs::create_dir(run.file()).unwrap();
            run.is_refused("a directory", more);
            fs::remove_dir(run.file()).unwrap();
            symlink("nowhere", run.file()).unwrap();
            run.is_refused("a dangling link", more);
            assert!(!run.at("nowhere").exists());
            fs::remove_file(run.file()).unwrap();
            symlink("/dev/full", run.file()).unwrap();
            run.is_refused("a link to a device", more);
            fs::remove_file(run.file()).unwrap();
            let _listener = UnixListener::bind(run.file()).unwrap();
            run.is_refused("a socket", more);
        }
    }
    assert!(fs::metadata("/dev/full").unwrap().file_type().is_char_device());
}

#[test]
fn device_nodes_stay_what_they_are() {
    let image = scratch();
    let image = image.path().join("image");
    fs::write(&image, vec![0; 1 << 20]).unwrap();
    let Some(disk) = LoopDevice::over(&image, &[]) else { return };
    for case in &CASES {
        for more in [&[][..], &["--overwrite"]] {
            let run = Try::new(case);
            symlink(&disk.path, run.file()).unwrap();
            run.is_refused("a link to a disk", more);
            fs::remove_file(run.file()).unwrap();
            let number = fs::metadata(&disk.path).unwrap().rdev();
            let [major, minor] =
                [rustix::fs::major(number), rustix::fs::minor(number)].map(|n| n.to_string());
            for node in [["b", &major, &minor], ["c", "1", "7"]] {
                if mknod(&run.file(), &node) {
                    run.is_refused(&format!("the node {node:?}"), more);
                    fs::remove_file(run.file()).unwrap();
                }
            }
        }
    }
    assert!(fs::read(&image).unwrap().iter().all(|byte| *byte == 0), "the disk was written");
}

#[test]
fn a_pipe_a_null_device_and_a_descriptor_are_written_to() {
    for case in CASES.iter().filter(|case| case.runs) {
        let run = Try::new(case);
        symlink("/dev/null", run.file()).unwrap();
        let output = run.run(&[]);
        assert!(output.status.code().is_some_and(|code| code < 5), "{}: {}", case.words, said(&output));
        assert!(run.file().is_symlink() && fs::metadata("/dev/null").unwrap().file_type().is_char_device());
        fs::remove_file(run.file()).unwrap();
        if !mknod(&run.file(), &["p"]) {
            return;
        }
        let reader = std::thread::spawn({
            let pipe = run.file();
            move || fs::read(pipe).unwrap()
        });
        let output = run.run(&[]);
        assert!(!reader.join().unwrap().is_empty(), "{}: {}", case.words, said(&output));
        assert!(fs::metadata(run.file()).unwrap().file_type().is_fifo(), "{}", case.words);
        // Data that the shell wrote before stays.
        fs::remove_file(run.file()).unwrap();
        symlink("/dev/stdout", run.file()).unwrap();
        let written = run.at("captured");
        fs::write(&written, "before\n").unwrap();
        let (_, recorded, _) = inputs();
        let status = plumb()
            .args(["report", "--format", "json", "-o", case.file])
            .arg(recorded)
            .current_dir(run.here.path())
            .stdout(fs::File::options().append(true).open(&written).unwrap())
            .status()
            .unwrap();
        let text = fs::read_to_string(&written).unwrap();
        assert!(status.success() && text.starts_with("before\n{") && run.file().is_symlink(), "{text}");
    }
}

#[test]
fn a_place_where_nothing_can_be_made_is_an_error_that_names_what_was_typed() {
    for case in CASES.iter().filter(|case| case.runs && case.words.contains("OUT")) {
        let nowhere = Case { file: "no/such/out", ..*case };
        let output = Try::new(&nowhere).run(&[]);
        assert_eq!(output.status.code(), Some(2), "{}: {}", case.words, said(&output));
        assert!(stderr(&output).contains("no/such/out"), "{}", said(&output));
    }
    let run = Try::new(&CASES[0]);
    fs::set_permissions(run.here.path(), fs::Permissions::from_mode(0o555)).unwrap();
    if fs::write(run.at("probe"), "").is_ok() {
        return plumb_testkit::skip("root writes into read-only directories");
    }
    let output = exited(run.run(&[]), 5);
    assert!(stderr(&output).contains("out") && !stderr(&output).contains(".plumb-"), "{}", said(&output));
    assert_eq!(entries(run.here.path()), Vec::<String>::new());
}

#[test]
fn a_full_disk_leaves_the_old_result() {
    let place = scratch();
    let (_, run, _) = inputs();
    let script = format!(
        "mount -t tmpfs -o size=64k none \"$place\"; cd \"$place\"; printf '# HELP plumb_x X.\\n' >out; \
         head -c 56k /dev/zero >fill; \"$plumb\" report {} --format html -o out || echo code $?; ls -A; cat out",
        run.display()
    );
    if !crate::common::can_mount() {
        return;
    }
    let output = crate::common::in_own_mounts(&script, place.path());
    let (said, told) = (String::from_utf8_lossy(&output.stdout), stderr(&output));
    assert!(said.contains("code 5") && said.ends_with("fill\nout\n# HELP plumb_x X.\n"), "{said}{told}");
    assert!(told.contains("out") && !told.contains(".plumb-"), "{told}");
}

#[test]
fn a_full_disk_leaves_no_recording_that_is_not_whole() {
    if !crate::common::can_mount() {
        return;
    }
    // A directory of tmpfs needs no page, a file needs one. Two of the four files of a survey are written
    // first.
    for (command, pages) in
        [("survey . --record", 0), ("survey . --record", 2), ("check sim:null --seconds 1 --out", 0)]
    {
        let place = scratch();
        let script = format!(
            "cd \"$place\"; mkdir m; mount -t tmpfs -o size=1m none m; head -c $((1024 - 4 * {pages}))k /dev/zero >m/fill; \
             \"$plumb\" {command} m/new/run || echo code $?; \
             \"$plumb\" {command} m/run || echo code $?; ls -A m"
        );
        let output = crate::common::in_own_mounts(&script, place.path());
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(
            said.contains("code 5") && said.ends_with("\nfill\n"),
            "{command}: {said}{}",
            stderr(&output)
        );
    }
}

#[test]
fn a_file_that_a_command_reads_measures_or_names_twice_is_refused_before_anything_runs() {
    let place = scratch();
    let at = |name: &str| place.path().join(name);
    for name in ["recording", "baseline", "program.sh", "job.fio"] {
        fs::write(at(name), "").unwrap();
    }
    symlink("recording", at("link")).unwrap();
    for words in [
        "prove app --recording recording --junit recording",
        "prove app --recording recording --keep link",
        "prove app --fs posix --run ./program.sh --keep new --junit new",
        "prove app --fs posix --run true --check ./program.sh --keep program.sh",
        "prove ci --baseline baseline --junit baseline true",
        "prove ci --page program.sh ./program.sh x",
        "prove ci --page new --gitlab ./new true",
        "policy plan off --all --claims baseline --out baseline",
        "fio --name=x --filename=new --size=64k --rw=write --output=new --no-record",
        "fio --name=x --filename=f --size=64k --rw=write --output=log_bw.1.log --write_bw_log=log --no-record",
    ] {
        let before = entries(place.path());
        let words = words.split(' ').chain(["--overwrite"].into_iter().filter(|_| !words.contains(" ci ")));
        let output = plumb().args(words.clone()).current_dir(place.path()).output().unwrap();
        let context = format!("{:?}: {}", words.collect::<Vec<_>>(), said(&output));
        assert_eq!(output.status.code(), Some(4), "{context}");
        assert!(stderr(&output).contains("name another file for the result"), "{context}");
        assert_eq!(entries(place.path()), before, "{context}");
    }
}

#[test]
fn a_name_among_devices_that_is_not_there_is_no_output_file() {
    let (_, run, _) = inputs();
    let words = ["--format", "html", "-o", "/dev/plumb-none-such", "--overwrite"];
    let output = exited(plumb().arg("report").arg(run).args(words).output().unwrap(), 2);
    assert!(stderr(&output).contains("there is no such device"), "{}", said(&output));
    assert!(!Path::new("/dev/plumb-none-such").exists());
}

#[test]
fn a_recorded_survey_replaces_an_earlier_one_only_with_overwrite() {
    let place = scratch();
    let run = |more: &[&str]| {
        plumb()
            .args(["survey", ".", "--record", "dir"])
            .args(more)
            .current_dir(place.path())
            .output()
            .unwrap()
    };
    let tree = place.path().join("dir/tree.json");
    let output = run(&[]);
    assert!(output.status.code().is_some_and(|code| code < 2), "{}", said(&output));
    let output = exited(run(&[]), 4);
    assert!(stderr(&output).contains("part of the recording"), "{}", said(&output));
    fs::write(&tree, "precious").unwrap();
    let output = exited(run(&[]), 4);
    assert!(stderr(&output).contains("dir/tree.json"), "{}", said(&output));
    assert_eq!(fs::read(&tree).unwrap(), b"precious");
    assert!(run(&["--overwrite"]).status.code().is_some_and(|code| code < 2));
    assert_ne!(fs::read(&tree).unwrap(), b"precious");
    // A file in place of the directory is named with a remedy, whatever else is typed.
    fs::remove_dir_all(place.path().join("dir")).unwrap();
    fs::write(place.path().join("dir"), "precious").unwrap();
    for more in [&[][..], &["--overwrite"]] {
        let output = exited(run(more), 2);
        assert!(stderr(&output).contains("dir is not a directory: name"), "{}", said(&output));
    }
    assert_eq!(fs::read(place.path().join("dir")).unwrap(), b"precious");
}
