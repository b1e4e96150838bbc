//! Arguments for exporting a device, common to caches and drives.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Port assigned to NBD by IANA.
const NBD_PORT: u16 = 10809;

/// Parses `ADDRESS[:PORT]`. The only name accepted is `localhost`, because the need for TLS must not depend
/// on a name server.
fn tcp_address(typed: &str) -> Result<SocketAddr, String> {
    let bare = typed.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(typed);
    let numeric = || bare.parse::<IpAddr>().ok().map(|address| SocketAddr::new(address, NBD_PORT));
    let named = || {
        let port = typed.strip_prefix("localhost")?;
        let port = if port.is_empty() { NBD_PORT } else { port.strip_prefix(':')?.parse().ok()? };
        Some(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port))
    };
    typed.parse().ok().or_else(numeric).or_else(named).ok_or_else(|| {
        "expected a numeric address or localhost, and a port, such as 127.0.0.1:10809 or [::1]:10809"
            .to_owned()
    })
}

/// On or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Switch {
    On,
    Off,
}

impl Switch {
    pub(crate) const fn is_on(self) -> bool {
        matches!(self, Self::On)
    }
}

/// How a device is reached.
#[derive(Debug, Args)]
pub(crate) struct ExportArguments {
    /// Serve over NBD on this unix socket, which only this user can open; may be given several times
    #[arg(long, value_name = "SOCKET")]
    pub(crate) nbd: Vec<PathBuf>,

    /// Serve over NBD on this TCP address, such as 127.0.0.1:10809; port 0 is any free port. An address that
    /// other machines can reach needs --tls-certificates. May be given several times
    #[arg(long, value_name = "ADDRESS[:PORT]", value_parser = tcp_address)]
    pub(crate) nbd_tcp: Vec<SocketAddr>,

    /// Encrypt TCP with server-cert.pem and server-key.pem in DIR; clients must have a certificate from the
    /// authorities in its ca-cert.pem
    #[arg(long, value_name = "DIR", requires = "nbd_tcp")]
    pub(crate) tls_certificates: Option<PathBuf>,

    /// Require a certificate of clients; when off, anyone who can reach the port can read and write the drive
    #[arg(long, value_enum, requires = "tls_certificates", default_value = "on")]
    pub(crate) tls_verify_peer: Switch,

    /// Attach as a loop device (needs root)
    #[arg(long)]
    pub(crate) attach: bool,

    /// Export through the ublk driver of the kernel (needs root, `modprobe ublk_drv`, Linux 6.0)
    #[arg(long, conflicts_with = "attach")]
    pub(crate) ublk: bool,
}

#[cfg(test)]
mod tests {
    use super::tcp_address;

    #[test]
    fn tcp_addresses_are_numeric_or_localhost() {
        for (typed, meant) in [
            ("127.0.0.1", "127.0.0.1:10809"),
            ("0.0.0.0:7", "0.0.0.0:7"),
            ("::1", "[::1]:10809"),
            ("[::]", "[::]:10809"),
            ("[::1]:0", "[::1]:0"),
            ("localhost", "127.0.0.1:10809"),
            ("localhost:9", "127.0.0.1:9"),
        ] {
            assert_eq!(tcp_address(typed).unwrap().to_string(), meant, "{typed}");
        }
        for typed in
            ["", "host:1", "127.0.0.1:x", "127.0.0.1:70000", "localhosts", "10809", ":10809", "/tmp/s"]
        {
            assert!(tcp_address(typed).is_err(), "{typed}");
        }
    }
}
