//! Which process serves an attachment, so that a later one can tell whether it still does.

use std::fmt;
use std::fs;
use std::io;
use std::str::FromStr;

/// A process that cannot be mistaken for another: a number is used again, a number with its start time is not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Server {
    pid: u32,
    /// Ticks since boot, as /proc/PID/stat gives it.
    start: u64,
    boot: String,
    /// Elsewhere the number means another process.
    namespace: String,
}

/// Not what [`Server`] writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NoServer;

impl Server {
    pub(super) fn this_process() -> io::Result<Self> {
        let pid = std::process::id();
        Ok(Self { pid, start: start_of(pid)?, boot: boot()?, namespace: namespace()? })
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    /// Whether it runs, or may: of a process in another process namespace, or where /proc does not answer, nothing is
    /// known, and it counts as living.
    pub(super) fn may_live(&self) -> bool {
        match (boot(), namespace()) {
            (Ok(boot), _) if boot != self.boot => false,
            (Ok(_), Ok(namespace)) if namespace == self.namespace => match start_of(self.pid) {
                Ok(start) => start == self.start,
                Err(error) => error.kind() != io::ErrorKind::NotFound,
            },
            _ => true,
        }
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} {} {} {}", self.pid, self.start, self.boot, self.namespace)
    }
}

impl FromStr for Server {
    type Err = NoServer;

    fn from_str(text: &str) -> Result<Self, NoServer> {
        // What was cut off while it was written lacks the end of the line.
        let line = text.strip_suffix('\n').ok_or(NoServer)?;
        let fields: Vec<&str> = line.split(' ').collect();
        let [pid, start, boot, namespace] = fields[..] else { return Err(NoServer) };
        Ok(Self {
            pid: pid.parse().map_err(|_| NoServer)?,
            start: start.parse().map_err(|_| NoServer)?,
            boot: boot.to_owned(),
            namespace: namespace.to_owned(),
        })
    }
}

fn boot() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

fn namespace() -> io::Result<String> {
    Ok(fs::read_link("/proc/self/ns/pid")?.to_string_lossy().into_owned())
}

/// The start time of a process, field 22 of /proc/PID/stat; NotFound if there is none, or only its remains.
fn start_of(pid: u32) -> io::Result<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let malformed = || io::Error::new(io::ErrorKind::InvalidData, format!("/proc/{pid}/stat: {text:?}"));
    // The name of the program may itself hold blanks and parentheses.
    let (_, fields) = text.rsplit_once(") ").ok_or_else(malformed)?;
    let mut fields = fields.split(' ');
    if matches!(fields.next(), Some("Z" | "X")) {
        return Err(io::ErrorKind::NotFound.into());
    }
    fields.nth(18).and_then(|field| field.parse().ok()).ok_or_else(malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_lives_and_its_record_reads_back() {
        let server = Server::this_process().unwrap();
        assert!(server.may_live());
        assert_eq!(server.to_string().parse(), Ok(server));
    }

    #[test]
    fn a_number_that_is_used_again_is_another_process() {
        let server = Server::this_process().unwrap();
        assert!(!Server { start: server.start + 1, ..server.clone() }.may_live());
        assert!(!Server { boot: "another".to_owned(), ..server.clone() }.may_live());
        assert!(
            Server { namespace: "another".to_owned(), start: 0, ..server }.may_live(),
            "nothing is known of it"
        );
    }

    #[test]
    fn a_record_that_was_cut_off_is_none() {
        let text = Server::this_process().unwrap().to_string();
        for end in 0..text.len() {
            assert_eq!(text[..end].parse::<Server>(), Err(NoServer), "{:?}", &text[..end]);
        }
    }

    #[test]
    fn a_zombie_serves_nothing() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let id = child.id();
        // Its standard streams tell nothing of its end, so wait for it without taking it away.
        let pid = rustix::process::Pid::from_raw(id as i32).unwrap();
        let options = rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT;
        rustix::process::waitid(rustix::process::WaitId::Pid(pid), options).unwrap();
        assert_eq!(start_of(id).unwrap_err().kind(), io::ErrorKind::NotFound);
        child.wait().unwrap();
    }
}
