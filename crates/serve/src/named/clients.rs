//! Who is connected to this process, in words.
//!
//! The server knows how many clients it has; who they are the kernel knows, of every socket. This process has no other
//! sockets than those of its exports, the control socket, and what it inherited, which has no name or another one.

use std::fs;
use std::path::Path;

use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, SocketAddrAny, SocketAddrUnix, getpeername, getsockname, sockopt};
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};

/// The clients of NBD: `process 12 (qemu-io)`, `10.0.0.7:51234`, each once however many connections it has. Those that
/// cannot be told are left out.
pub(crate) fn of_nbd(control: &Path) -> Vec<String> {
    let mut found: Vec<String> = sockets().iter().filter_map(|socket| client(socket, control)).collect();
    found.sort();
    found.dedup();
    found
}

/// All descriptors of this process that can be had.
fn sockets() -> Vec<OwnedFd> {
    let (Ok(this), Ok(files)) = (pidfd_open(getpid(), PidfdFlags::empty()), fs::read_dir("/proc/self/fd"))
    else {
        return Vec::new();
    };
    let is_socket = |entry: &fs::DirEntry| {
        fs::read_link(entry.path()).is_ok_and(|target| target.to_string_lossy().starts_with("socket:"))
    };
    let numbers =
        files.flatten().filter(is_socket).filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter_map(|number| pidfd_getfd(&this, number, PidfdGetfdFlags::empty()).ok()).collect()
}

fn client(socket: &OwnedFd, control: &Path) -> Option<String> {
    if sockopt::socket_acceptconn(socket).ok()? {
        return None;
    }
    let local = getsockname(socket).ok()?;
    match local.address_family() {
        AddressFamily::UNIX => {
            let local = SocketAddrUnix::try_from(local).ok()?;
            let path = local.path_bytes()?;
            let is_control = Path::new(std::str::from_utf8(path).ok()?) == control;
            if is_control { None } else { process(socket) }
        }
        AddressFamily::INET | AddressFamily::INET6 => getpeername(socket).ok()?.and_then(address),
        _ => None,
    }
}

fn process(socket: &OwnedFd) -> Option<String> {
    let pid = sockopt::socket_peercred(socket).ok()?.pid.as_raw_pid();
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    Some(if name.is_empty() { format!("process {pid}") } else { format!("process {pid} ({})", name.trim()) })
}

fn address(peer: SocketAddrAny) -> Option<String> {
    std::net::SocketAddr::try_from(peer).ok().map(|peer| peer.to_string())
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::{UnixListener, UnixStream};

    use super::*;

    #[test]
    fn a_process_with_several_connections_is_named_once() {
        let directory = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(directory.path().join("nbd")).unwrap();
        let connect = |_| {
            let client = UnixStream::connect(directory.path().join("nbd")).unwrap();
            (client, listener.accept().unwrap())
        };
        let connections: Vec<_> = (0..3).map(connect).collect();
        if sockets().is_empty() {
            return plumb_testkit::skip("descriptors of this process cannot be had");
        }
        let this = format!("process {}", std::process::id());
        let named = of_nbd(Path::new("/nowhere"));
        assert_eq!(named.iter().filter(|name| name.starts_with(&this)).count(), 1, "{named:?}");
        drop(connections);
    }
}
