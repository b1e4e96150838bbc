//! blkid(8), asked what a target holds, beside the own signatures: it knows more kinds, and newer ones.
//!
//! It is asked only before something is written that plumb did not make, and only where the own signatures
//! find nothing, so it can add a refusal and never take one away. Without the program, or if it fails or does
//! not answer in time, the own signatures decide alone.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// Where it may be: a user's PATH often leaves out the second and third.
const PROGRAMS: [&str; 3] = ["blkid", "/usr/sbin/blkid", "/sbin/blkid"];
/// Time that it may take. It reads some hundred places of a disk.
const TIME: Duration = Duration::from_secs(10);
/// Maximum number of bytes read of blkid's answer.
const ANSWER_BYTES: usize = 64 << 10;
/// Exit code of blkid where several kinds contradict each other.
const AMBIVALENT: i32 = 8;

/// Returns blkid's name for the contents of the open file or device: `swap`, `dos`. `None` if it finds
/// nothing, or cannot be asked.
pub(crate) fn ask(file: BorrowedFd<'_>) -> Option<String> {
    ask_with(&PROGRAMS, file, TIME)
}

fn ask_with(programs: &[&str], file: BorrowedFd<'_>, time: Duration) -> Option<String> {
    programs.iter().find_map(|program| {
        let standard_input = file.try_clone_to_owned().ok()?;
        match start(program, standard_input) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(_) => Some(None),
            Ok(child) => Some(answer(child, time)),
        }
    })?
}

/// Starts it on the file as its standard input, so that it looks at this very file, whatever its name leads
/// to.
fn start(program: &str, file: OwnedFd) -> io::Result<Child> {
    let mut command = Command::new(program);
    command.args(["-p", "-o", "export", "/dev/stdin"]).env("LC_ALL", "C");
    command.stdin(Stdio::from(file)).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()
}

fn answer(mut child: Child, time: Duration) -> Option<String> {
    let until = Instant::now() + time;
    let text = child.stdout.take().and_then(|stdout| read(&stdout, until));
    let ended = has_ended(&child, until);
    if !ended {
        // One that does not even end by this is left to the end of this process.
        child.kill().ok()?;
        has_ended(&child, Instant::now() + Duration::from_secs(1)).then_some(())?;
    }
    let status = child.wait().ok()?;
    match status.code() {
        Some(0) => named(&text?),
        Some(AMBIVALENT) => Some("several kinds of contents".to_owned()),
        _ => None,
    }
}

/// Returns all that it writes; `None` if that does not end in time.
fn read(stdout: &ChildStdout, until: Instant) -> Option<String> {
    let mut text = Vec::new();
    let mut part = [0; 4096];
    while text.len() < ANSWER_BYTES {
        wait_readable(stdout.as_fd(), until)?;
        match rustix::io::read(stdout, &mut part) {
            Ok(0) => return Some(String::from_utf8_lossy(&text).into_owned()),
            Ok(read) => text.extend_from_slice(&part[..read]),
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return None,
        }
    }
    None
}

fn has_ended(child: &Child, until: Instant) -> bool {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let process = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    process.is_some_and(|process| wait_readable(process.as_fd(), until).is_some())
}

fn wait_readable(file: BorrowedFd<'_>, until: Instant) -> Option<()> {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).ok()?;
        match poll(&mut [PollFd::new(&file, PollFlags::IN)], Some(&left)) {
            Ok(0) => return None,
            Ok(_) => return Some(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return None,
        }
    }
}

/// Returns the type and the partition table in `KEY=VALUE` lines. What it says of a partition's entry in the
/// table of its disk is no content.
fn named(text: &str) -> Option<String> {
    let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    let names: Vec<&str> = ["TYPE", "PTTYPE"].into_iter().filter_map(value).collect();
    if names.is_empty() { None } else { Some(names.join(" and ")) }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    /// Returns a program of a test in place of blkid.
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
