//! Finding and killing processes that the programs of this process leave running.
//!
//! A process in its own session leaves the process group of the program that started it, and becomes a child
//! of init when that program ends. While an [`Adoption`] is held, it becomes a child of this process instead
//! (`PR_SET_CHILD_SUBREAPER`). Each program that [`child::run`](crate::child::run) starts has an environment
//! variable with a unique value, which its descendants inherit. This value identifies its orphans.
//!
//! ```text
//!   plumb ── program ── daemon            plumb ── daemon, PLUMB_PROCESS=41-1f.7
//!                (its own session)   ─►      (the program has ended)
//! ```
//!
//! If this process is killed, a waiting shell then kills all processes that have the variable.
//!
//! Limitations: a daemon that has cleared its environment is found only when the adoption ends, and never
//! after this process was killed. A daemon of another user is found only if this process runs as root.

use std::fs;
use std::io::{self, PipeWriter};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use plumb_block::unix_time;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, getpid, kill_process, pidfd_open, set_child_subreaper, waitpid,
};

use crate::tree::LiveTree;
use crate::tree::process::ProcessStat;

/// Environment variable of every program and its descendants.
pub(crate) const VARIABLE: &str = "PLUMB_PROCESS";
/// Maximum number of searches for orphans, since each killed one may have children of its own.
const ROUNDS_MAX: usize = 100;
/// Time for a killed process to disappear, unless the kernel holds it.
const GONE_WITHIN: Timespec = Timespec { tv_sec: 2, tv_nsec: 0 };
/// Shell program that waits for the end of its input and then kills all processes that have the variable of
/// the process `$0`.
const WATCH: &str = "exec >/dev/null 2>&1; read _; for round in 1 2 3 4 5 6 7 8 9; do \
                     f=$(grep -l \"PLUMB_PROCESS=$0[.]\" /proc/[0-9]*/environ); [ \"$f\" ] || exit 0; \
                     for p in $f; do p=${p#/proc/}; kill -KILL \"${p%/environ}\"; done; done";

/// Returns the prefix of the variable's value in the programs of this process. The process number alone is
/// not unique across containers.
fn token() -> &'static str {
    static TOKEN: OnceLock<String> = OnceLock::new();
    TOKEN.get_or_init(|| format!("{}-{:x}", getpid(), unix_time().0))
}

/// Value of a program's variable.
pub(crate) struct Mark(String);

impl Mark {
    /// Creates a unique value.
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(format!("{}.{}", token(), NEXT.fetch_add(1, Ordering::Relaxed)))
    }

    /// Returns the value.
    pub(crate) fn value(&self) -> &str {
        &self.0
    }

    /// Returns true if a process has this value.
    fn is_of(&self, process: Pid) -> bool {
        let wanted = format!("{VARIABLE}={}", self.0);
        has_variable(process, &|one| one == wanted.as_bytes())
    }

    /// Returns true if a process has any value of this process's programs.
    fn is_any_of(process: Pid) -> bool {
        let wanted = format!("{VARIABLE}={}.", token());
        has_variable(process, &|one| one.starts_with(wanted.as_bytes()))
    }
}

/// Returns true if `is_it` holds for an environment variable of a process. The environment is empty for a
/// moment while the process executes a new program.
fn has_variable(process: Pid, is_it: &dyn Fn(&[u8]) -> bool) -> bool {
    let read = || fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
    let environment = (0..3).map(|_| read()).find(|environment| !environment.is_empty());
    environment.is_some_and(|environment| environment.split(|byte| *byte == 0).any(is_it))
}

/// Period during which orphans become children of this process. Must begin before any program is run, on a
/// thread that shares the descriptors of the first thread.
pub struct Adoption {
    watch: Child,
    _held: PipeWriter,
}

impl Adoption {
    /// Makes orphans children of this process from now on.
    ///
    /// # Errors
    /// Fails as prctl(2), pipe(2) and posix_spawn(3) do.
    pub fn begin() -> io::Result<Self> {
        set_child_subreaper(Some(getpid()))?;
        let (ends_with_us, held) = io::pipe()?;
        let mut watch = Command::new("/bin/sh");
        watch.arg("-c").arg(WATCH).arg(token()).stdin(ends_with_us);
        let watch = watch.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0).spawn()?;
        Ok(Self { watch, _held: held })
    }

    /// Kills all programs of this process and all orphans. Returns the names of the orphans.
    pub fn end(mut self) -> Vec<String> {
        for program in children().into_iter().filter(|child| Mark::is_any_of(*child)) {
            kill_process(program, Signal::KILL).unwrap_or_default();
        }
        self.end_orphans()
    }

    fn end_orphans(&mut self) -> Vec<String> {
        self.watch.kill().and_then(|()| self.watch.wait().map(drop)).unwrap_or_default();
        let left = kill_while(&|_| true);
        set_child_subreaper(None).unwrap_or_default();
        left.into_iter().map(|it| it.name).collect()
    }
}

impl Drop for Adoption {
    fn drop(&mut self) {
        self.end_orphans();
    }
}

/// Kills everything that a program, which led a process group and has ended, left running. Returns the names
/// of those outside its group.
pub(crate) fn kill_left(mark: &Mark, leader: Pid) -> Vec<String> {
    let group = leader.as_raw_pid() as u32;
    let in_group = |process| ProcessStat::read(&LiveTree, process).is_some_and(|it| it.group == group);
    let left = kill_while(&|process| in_group(process) || mark.is_of(process));
    left.into_iter().filter(|it| it.group != group).map(|it| it.name).collect()
}

/// Kills orphans for which `is_it` holds until there are none. Returns those that were running.
fn kill_while(is_it: &dyn Fn(Pid) -> bool) -> Vec<ProcessStat> {
    let mut left = Vec::new();
    // The kernel may hold a killed process for as long as a device does not respond.
    let mut killed = Vec::new();
    for _ in 0..ROUNDS_MAX {
        let mut found = orphans();
        found.retain(|process| !killed.contains(process) && is_it(*process));
        if found.is_empty() {
            break;
        }
        for process in found {
            left.extend(ProcessStat::read(&LiveTree, process).filter(|it| it.state != 'Z'));
            end(process);
            killed.push(process);
        }
    }
    left
}

/// Kills an orphan and waits until it has ended.
fn end(process: Pid) {
    kill_process(process, Signal::KILL).unwrap_or_default();
    if let Ok(ended) = pidfd_open(process, PidfdFlags::empty()) {
        poll(&mut [PollFd::new(&ended, PollFlags::IN)], Some(&GONE_WITHIN)).unwrap_or_default();
    }
    waitpid(Some(process), WaitOptions::NOHANG).unwrap_or_default();
}

/// Returns the children of the first thread, to which the kernel assigns orphans.
fn orphans() -> Vec<Pid> {
    children_of(&getpid().to_string())
}

/// Returns the children of all threads.
fn children() -> Vec<Pid> {
    let threads = fs::read_dir(format!("/proc/{}/task", getpid())).into_iter().flatten().flatten();
    threads.flat_map(|thread| children_of(&thread.file_name().to_string_lossy())).collect()
}

/// Returns the children of a thread of this process.
fn children_of(thread: &str) -> Vec<Pid> {
    let path = format!("/proc/{}/task/{thread}/children", getpid());
    let children = fs::read_to_string(path).unwrap_or_default();
    children.split_whitespace().filter_map(|number| Pid::from_raw(number.parse().ok()?)).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;

    use super::*;
    use crate::child::{self, Limits};

    /// Makes pipes, and a text that goes to the first once the program that shows it runs.
    const PREPARES: &str = "mkfifo ready hold; echo > text";
    /// Shows the text, and waits for ever.
    const SHOWS: &str = "cat text hold 3>&1 >ready";

    fn run(line: &str, held: PipeWriter) -> Vec<String> {
        let stop = AtomicBool::new(false);
        let limits = Limits { timeout: None, stop: &[&stop], grace: Duration::ZERO, kills_leftovers: true };
        let directory = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", line]).current_dir(directory.path()).stdout(held);
        child::run(command, Vec::new(), limits).unwrap().left
    }

    #[test]
    fn a_daemon_is_named_and_killed_with_its_children_and_a_group_is_killed_in_silence() {
        let adoption = Adoption::begin().unwrap();
        let waits = "head -n 1 ready >/dev/null";
        for (line, named) in [
            (format!("{PREPARES}; setsid sh -c '{SHOWS}; exit 1' & {waits}"), &["cat", "sh"][..]),
            (format!("{PREPARES}; (setsid {SHOWS} &) ; {waits}"), &["cat"]),
            ("sleep 1000 &".to_owned(), &[]),
        ] {
            // Ends once nobody is left who has the other end.
            let (mut all, held) = io::pipe().unwrap();
            let mut left = run(&line, held);
            left.sort();
            assert_eq!(left, named, "{line}");
            assert_eq!(all.read(&mut [0]).unwrap(), 0, "{line}");
        }
        drop(adoption);
    }

    #[test]
    fn what_a_killed_process_leaves_running_is_killed_wherever_it_is() {
        let mark = Mark::new();
        let mut daemon = Command::new("setsid");
        daemon.args(["sleep", "1000"]).env(VARIABLE, mark.value());
        let mut daemon = daemon.spawn().unwrap();
        let mut watch = Command::new("/bin/sh");
        let (ends, held) = io::pipe().unwrap();
        // Only those of one program here: others of this process go on, also one whose number begins so.
        let script = WATCH.replace("grep -l ", "grep -lz ").replace("[.]", "$");
        let watch = watch.arg("-c").arg(script).arg(mark.value()).stdin(ends);
        let mut watch = watch.spawn().unwrap();
        drop(held);
        assert!(watch.wait().unwrap().success());
        assert_eq!(daemon.wait().unwrap().to_string(), "signal: 9 (SIGKILL)");
    }
}
