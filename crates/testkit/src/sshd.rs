//! Real sshds on addresses of the loopback interface, each with the same key; the client knows them by it.

use std::path::Path;
use std::process::{Child, Command, Stdio};

/// sshds that run until this is dropped.
#[derive(Debug)]
pub struct Sshds {
    children: Vec<Child>,
    /// The file with the configuration of the client: `ssh -F`.
    pub config: String,
}

impl Sshds {
    /// Starts `count` sshds, at 127.0.1.1 and the addresses that follow, with their files in `place`; the
    /// last has a key that the client does not know, if `is_stranger`. `None` where there is no sshd, or it
    /// does not start.
    pub fn start(place: &Path, count: usize, is_stranger: bool) -> Option<Self> {
        let path = |name: &str| place.join(name).to_string_lossy().into_owned();
        let made = |name: &str| {
            let made = Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-f", &path(name)])
                .output();
            made.is_ok_and(|output| output.status.success())
        };
        if !made("host") || !made("user") || !made("other") {
            return None;
        }
        let port = std::net::TcpListener::bind("127.0.1.1:0").ok()?.local_addr().ok()?.port();
        std::fs::create_dir_all("/run/sshd").ok();
        let mut known = String::new();
        // Dropped where one cannot be started, so that none is left behind.
        let mut sshds = Self { children: Vec::new(), config: path("client") };
        for number in 1..=count {
            let address = format!("127.0.1.{number}");
            let config = format!(
                "ListenAddress {address}\nPort {port}\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nPasswordAuthentication \
                 no\nKbdInteractiveAuthentication no\nUsePAM no\nPidFile none\nMaxStartups 100\n",
                path("host"),
                path("user.pub")
            );
            std::fs::write(place.join(format!("sshd{number}")), config).ok()?;
            let file = path(&format!("sshd{number}"));
            let child =
                Command::new("/usr/sbin/sshd").args(["-D", "-e", "-f", &file]).stderr(Stdio::null()).spawn();
            sshds.children.push(child.ok()?);
            let is_other = is_stranger && number == count;
            let key =
                std::fs::read_to_string(place.join(if is_other { "other.pub" } else { "host.pub" })).ok()?;
            known += &format!("[{address}]:{port} {key}");
        }
        std::fs::write(place.join("known"), known).ok()?;
        let config = format!(
            "Host *\n Port {port}\n IdentityFile {}\n IdentitiesOnly yes\n UserKnownHostsFile {}\n StrictHostKeyChecking \
             yes\n BatchMode yes\n ConnectionAttempts 20\n",
            path("user"),
            path("known")
        );
        std::fs::write(&sshds.config, config).ok()?;
        Some(sshds)
    }
}

impl Drop for Sshds {
    fn drop(&mut self) {
        for child in &mut self.children {
            child.kill().ok();
            child.wait().ok();
        }
    }
}
