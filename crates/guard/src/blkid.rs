//! Contents of a target as determined by blkid(8), which knows more kinds than plumb's own signatures.
//!
//! blkid runs only before a write to something that plumb did not create, and only if plumb's signatures find
//! nothing. So blkid can add a refusal, but never prevent one. If it is missing, fails, or exceeds its time
//! limit, plumb's own signatures decide alone.

use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use plumb_linux::child::reap_within;
use rustix::fs::{MemfdFlags, memfd_create};

/// Names and paths of the program: the PATH of users often lacks the sbin directories.
const PROGRAMS: [&str; 3] = ["blkid", "/usr/sbin/blkid", "/sbin/blkid"];
/// Time limit. blkid reads some hundred places of a disk.
const TIME: Duration = Duration::from_secs(10);
/// Maximum number of bytes read of blkid's output.
const ANSWER_BYTES: u64 = 64 << 10;
/// Exit code of blkid if several kinds contradict each other.
const AMBIVALENT: i32 = 8;

/// Returns blkid's name for the contents of the open file or device, such as `swap` or `dos`. `None` if it
/// finds nothing or cannot be run.
pub(crate) fn ask(file: BorrowedFd<'_>) -> Option<String> {
    ask_with(&PROGRAMS, file, TIME)
}

fn ask_with(programs: &[&str], file: BorrowedFd<'_>, time: Duration) -> Option<String> {
    programs.iter().find_map(|program| {
        let standard_input = file.try_clone_to_owned().ok()?;
        let text = File::from(memfd_create("blkid", MemfdFlags::CLOEXEC).ok()?);
        match start(program, standard_input, text.try_clone().ok()?) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(_) => Some(None),
            Ok(child) => Some(answer(child, text, time)),
        }
    })?
}

/// Starts blkid with the open file as standard input, so that it reads this file wherever the name leads by
/// now. Its output goes to `text`.
fn start(program: &str, file: OwnedFd, text: File) -> io::Result<Child> {
    let mut command = Command::new(program);
    command.args(["-p", "-o", "export", "/dev/stdin"]).env("LC_ALL", "C");
    command.stdin(Stdio::from(file)).stdout(text).stderr(Stdio::null()).spawn()
}

/// Waits for blkid and parses its output in `text`; `None` after a timeout or failure.
fn answer(mut child: Child, mut text: File, time: Duration) -> Option<String> {
    let Some(status) = reap_within(&mut child, time).ok()? else {
        child.kill().ok()?;
        // A process that survives SIGKILL is left to the end of this process.
        reap_within(&mut child, Duration::from_secs(1)).ok()?;
        return None;
    };
    match status.code() {
        Some(0) => {
            let mut answer = Vec::new();
            text.rewind().ok()?;
            text.take(ANSWER_BYTES).read_to_end(&mut answer).ok()?;
            named(&String::from_utf8_lossy(&answer))
        }
        Some(AMBIVALENT) => Some("several kinds of contents".to_owned()),
        _ => None,
    }
}

/// Returns the file system type and partition table type from `KEY=VALUE` lines. Ignores keys about the entry
/// of a partition in the table of its disk.
fn named(text: &str) -> Option<String> {
    let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    let names: Vec<&str> = ["TYPE", "PTTYPE"].into_iter().filter_map(value).collect();
    if names.is_empty() { None } else { Some(names.join(" and ")) }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;
    use std::path::PathBuf;

    use super::*;

    /// Creates a script that replaces blkid.
    fn script(directory: &tempfile::TempDir, text: &str) -> PathBuf {
        let path = directory.path().join("blkid");
        plumb_testkit::program::write_script(&path, text);
        path
    }

    fn says(text: &str, time: Duration) -> Option<String> {
        let directory = tempfile::tempdir().unwrap();
        let path = script(&directory, text);
        let file = tempfile::tempfile().unwrap();
        ask_with(&["/none-such/blkid", path.to_str().unwrap()], file.as_fd(), time)
    }

    #[test]
    fn its_answer_is_read_and_nothing_else_is() {
        let ample = Duration::from_secs(30);
        assert_eq!(says("echo DEVNAME=/dev/stdin; echo TYPE=zzz", ample).as_deref(), Some("zzz"));
        assert_eq!(says("echo PTTYPE=dos", ample).as_deref(), Some("dos"));
        assert_eq!(says("echo PART_ENTRY_TYPE=0x83; echo PART_ENTRY_SCHEME=dos", ample), None);
        assert_eq!(says("exit 2", ample), None);
        assert_eq!(says("exit 8", ample).as_deref(), Some("several kinds of contents"));
        assert_eq!(says("echo TYPE=x; exit 4", ample), None);
    }

    #[test]
    fn one_that_hangs_or_is_missing_says_nothing() {
        let short = Duration::from_millis(50);
        assert_eq!(says("exec sleep 1000", short), None);
        assert_eq!(says("exec >&- ; exec sleep 1000", short), None);
        let file = tempfile::tempfile().unwrap();
        assert_eq!(ask_with(&["/none-such/blkid"], file.as_fd(), short), None);
    }

    #[test]
    fn the_real_one_reads_the_open_file() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(8 << 20).unwrap();
        assert_eq!(ask(file.as_fd()), None);
        rustix::io::pwrite(&file, b"SWAPSPACE2", 4086).unwrap();
        rustix::io::pwrite(&file, &[1, 0, 0, 0, 0xff, 0, 0, 0], 1024).unwrap();
        match ask(file.as_fd()) {
            Some(name) => assert_eq!(name, "swap"),
            None => plumb_testkit::skip("there is no blkid here"),
        }
    }
}
