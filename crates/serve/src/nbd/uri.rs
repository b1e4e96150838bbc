//! Location of an export: NBD URIs as in the "NBD URI specification" (`doc/uri.md` of the NetworkBlockDevice
//! project) and libnbd.
//!
//! ```text
//! nbd://host[:port]/export             nbds://host[:port]/export?tls-certificates=DIR       TCP, plain and encrypted
//! nbd+unix:///export?socket=PATH       nbds+unix:///export?socket=PATH&tls-certificates=DIR a Unix socket
//! ```
//!
//! Everything is percent-decoded. An empty export name is the server's default export.

use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::str::FromStr;

use super::wire::PORT;

/// Valid forms of a URI, for messages.
const EXPECTED: &str = "nbd://HOST[:PORT]/EXPORT, nbd+unix:///EXPORT?socket=PATH, or nbds for TLS";

/// An export with its location.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uri {
    /// Address at which the server listens.
    pub address: Address,
    /// Name of the server's export; the empty name is its default.
    pub export: String,
    /// TLS settings, if encrypted.
    pub tls: Option<TlsUri>,
}

/// Address of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// A Unix stream socket.
    Unix(PathBuf),
    /// A TCP port.
    Tcp {
        /// Numeric address, `localhost`, or a name. Only names are resolved, by the C library if available.
        host: String,
        /// The port.
        port: u16,
    },
}

/// TLS settings of a URI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsUri {
    /// Directory of `ca-cert.pem` and, if the server requires them, `client-cert.pem` and `client-key.pem`.
    pub certificates: Option<PathBuf>,
    /// True if the server's certificate is verified.
    pub is_verified: bool,
    /// Required name in the server's certificate, if other than the host.
    pub hostname: Option<String>,
}

/// Error of an invalid URI.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{uri:?} is not an NBD URI: {because}")]
pub struct UriError {
    /// URI as it was given.
    pub uri: String,
    /// Reason why the URI is invalid, and what was expected.
    pub because: String,
}

impl FromStr for Uri {
    type Err = UriError;

    fn from_str(uri: &str) -> Result<Self, UriError> {
        parse(uri).map_err(|because| UriError { uri: uri.to_owned(), because })
    }
}

/// Formats the URI so that it parses to the same value, whatever its names contain.
impl fmt::Display for Uri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls.is_some() { "nbds" } else { "nbd" };
        let export = encode(self.export.as_bytes());
        let mut parameters = Vec::new();
        match &self.address {
            Address::Unix(path) => {
                write!(f, "{scheme}+unix:///{export}")?;
                parameters.push(format!("socket={}", encode(path.as_os_str().as_bytes())));
            }
            Address::Tcp { host, port } if host.contains(':') => {
                write!(f, "{scheme}://[{host}]:{port}/{export}")?;
            }
            Address::Tcp { host, port } => {
                write!(f, "{scheme}://{}:{port}/{export}", encode(host.as_bytes()))?;
            }
        }
        parameters.extend(self.tls.iter().flat_map(TlsUri::parameters));
        if parameters.is_empty() { Ok(()) } else { write!(f, "?{}", parameters.join("&")) }
    }
}

impl TlsUri {
    fn parameters(&self) -> Vec<String> {
        let certificates =
            self.certificates.as_ref().map(|path| ("tls-certificates", encode(path.as_os_str().as_bytes())));
        let hostname = self.hostname.as_ref().map(|name| ("tls-hostname", encode(name.as_bytes())));
        let verify = (!self.is_verified).then(|| ("tls-verify", "false".to_owned()));
        let all = [certificates, hostname, verify].into_iter().flatten();
        all.map(|(name, value)| format!("{name}={value}")).collect()
    }
}

/// Percent-encodes everything that has a meaning in a URI or shell, or is not ASCII.
fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' | b':' | b',' => {
                text.push(char::from(*byte));
            }
            other => text.push_str(&format!("%{other:02x}")),
        }
    }
    text
}

/// Parameters after the question mark.
#[derive(Default)]
struct Parameters {
    socket: Option<Vec<u8>>,
    certificates: Option<Vec<u8>>,
    hostname: Option<Vec<u8>>,
    is_verified: Option<bool>,
}

fn parse(uri: &str) -> Result<Uri, String> {
    let (scheme, rest) = uri.split_once("://").ok_or_else(|| format!("expected {EXPECTED}"))?;
    let (is_tls, is_unix) = match scheme.to_ascii_lowercase().as_str() {
        "nbd" => (false, false),
        "nbds" => (true, false),
        "nbd+unix" => (false, true),
        "nbds+unix" => (true, true),
        other => return Err(format!("the scheme {other:?} is none of nbd, nbds, nbd+unix, nbds+unix")),
    };
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, export) = rest.split_once('/').unwrap_or((rest, ""));
    let parameters = Parameters::parse(query)?;
    let address = if is_unix {
        unix_address(authority, parameters.socket)?
    } else if parameters.socket.is_some() {
        return Err(format!("socket= goes with {scheme}+unix only"));
    } else {
        tcp_address(authority)?
    };
    let tls_parameters = parameters.certificates.is_some() || parameters.hostname.is_some();
    if !is_tls && (tls_parameters || parameters.is_verified.is_some()) {
        return Err("the tls- parameters go with nbds and nbds+unix only".to_owned());
    }
    let hostname = parameters.hostname.map(|name| text("tls-hostname", name)).transpose()?;
    let tls = is_tls.then(|| TlsUri {
        certificates: parameters.certificates.map(path),
        is_verified: parameters.is_verified.unwrap_or(true),
        hostname,
    });
    Ok(Uri { address, export: text("the export name", decode(export)?)?, tls })
}

impl Parameters {
    fn parse(query: &str) -> Result<Self, String> {
        let mut parameters = Self::default();
        for parameter in query.split(['&', ';']).filter(|parameter| !parameter.is_empty()) {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            let value = decode(value)?;
            if value.is_empty() {
                return Err(format!("the parameter {name:?} has no value"));
            }
            match name {
                "socket" => parameters.socket = Some(value),
                "tls-certificates" => parameters.certificates = Some(value),
                "tls-hostname" => parameters.hostname = Some(value),
                "tls-verify" | "tls-verify-peer" => parameters.is_verified = Some(switch(name, &value)?),
                _ => {
                    return Err(format!(
                        "the parameter {name:?} is none of socket, tls-certificates, tls-hostname, tls-verify"
                    ));
                }
            }
        }
        Ok(parameters)
    }
}

fn switch(name: &str, value: &[u8]) -> Result<bool, String> {
    match value {
        b"true" | b"1" | b"yes" | b"on" => Ok(true),
        b"false" | b"0" | b"no" | b"off" => Ok(false),
        _ => Err(format!("{name} is {:?}, expected true or false", String::from_utf8_lossy(value))),
    }
}

fn unix_address(authority: &str, socket: Option<Vec<u8>>) -> Result<Address, String> {
    if !authority.is_empty() {
        return Err(format!(
            "a Unix socket has no host, but {authority:?} is given; write nbd+unix:///EXPORT"
        ));
    }
    let socket = socket.ok_or("expected ?socket=PATH")?;
    Ok(Address::Unix(path(socket)))
}

fn tcp_address(authority: &str) -> Result<Address, String> {
    // libnbd uses a user name for TLS keys, which are not supported here.
    if authority.contains('@') {
        return Err("a user name is not supported; expected HOST[:PORT]".to_owned());
    }
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, after) = rest.split_once(']').ok_or("expected ] after the IPv6 address")?;
            let port = match after {
                "" => None,
                _ => Some(after.strip_prefix(':').ok_or("expected :PORT after the IPv6 address")?),
            };
            (host, port)
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    if host.is_empty() {
        return Err("there is no host; expected nbd://HOST[:PORT]/EXPORT".to_owned());
    }
    let port = match port {
        None | Some("") => PORT,
        Some(port) => port.parse().map_err(|_| format!("the port {port:?} is not a number below 65536"))?,
    };
    Ok(Address::Tcp { host: text("the host", decode(host)?)?, port })
}

/// Decodes percent-encoding.
fn decode(encoded: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(encoded.len());
    let mut rest = encoded.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = rest.first_chunk::<2>().and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits
            .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
            .and_then(|digits| u8::from_str_radix(digits, 16).ok())
            .ok_or_else(|| {
                format!("{encoded:?} has a % without two hexadecimal digits after it; write %25")
            })?;
        bytes.push(byte);
        rest = &rest[2..];
    }
    Ok(bytes)
}

fn path(bytes: Vec<u8>) -> PathBuf {
    OsString::from_vec(bytes).into()
}

fn text(what: &str, bytes: Vec<u8>) -> Result<String, String> {
    match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') && text.len() <= super::wire::STRING_MAX_BYTES => Ok(text),
        _ => Err(format!("{what} is not UTF-8 of at most 4096 bytes without NUL")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(host: &str, port: u16) -> Address {
        Address::Tcp { host: host.to_owned(), port }
    }

    #[test]
    fn uris_of_libnbd_are_understood() {
        let plain = |address, export: &str| Uri { address, export: export.to_owned(), tls: None };
        let unix = Address::Unix(PathBuf::from("/run/a b.sock"));
        for (uri, expected) in [
            ("nbd://disks.example/x", plain(tcp("disks.example", 10809), "x")),
            ("NBD://127.0.0.1:99", plain(tcp("127.0.0.1", 99), "")),
            ("nbd://[::1]:7/a/b%20c", plain(tcp("::1", 7), "a/b c")),
            ("nbd://[::1]/", plain(tcp("::1", 10809), "")),
            ("nbd+unix:///disk?socket=/run/a%20b.sock", plain(unix.clone(), "disk")),
            ("nbd+unix://?socket=/run/a%20b.sock", plain(unix, "")),
        ] {
            assert_eq!(uri.parse::<Uri>().unwrap(), expected, "{uri}");
        }
        let tls: Uri = "nbds+unix:///d?socket=/s&tls-certificates=/pki&tls-verify=false".parse().unwrap();
        let expected = TlsUri { certificates: Some("/pki".into()), is_verified: false, hostname: None };
        assert_eq!(tls.tls, Some(expected));
    }

    #[test]
    fn errors_say_what_was_expected() {
        for (uri, part) in [
            ("/dev/nbd0", "nbd+unix:///EXPORT?socket=PATH"),
            ("http://a/b", "none of nbd, nbds"),
            ("nbd:///x", "expected nbd://HOST"),
            ("nbd+unix:///x", "expected ?socket=PATH"),
            ("nbd+unix://host/x?socket=/s", "no host"),
            ("nbd://h/x?socket=/s", "nbd+unix only"),
            ("nbd://h:70000/x", "below 65536"),
            ("nbd://h/%zz", "%25"),
            ("nbd://h/%ff", "UTF-8"),
            ("nbd://h/x?tls-certificates=/d", "nbds"),
            ("nbds://h/x?tls-verify=maybe", "true or false"),
            ("nbd+unix:///x?sockt=/s", "none of socket"),
            ("nbd://user@h/x", "user name"),
        ] {
            let error = uri.parse::<Uri>().unwrap_err().to_string();
            assert!(error.contains(part) && error.contains(uri), "{uri}: {error}");
        }
    }

    #[test]
    fn what_is_shown_is_understood_again() {
        for uri in [
            "nbd://[::1]:7/x",
            "nbds://h:10809/x",
            "nbd+unix:///x?socket=/s",
            "nbd+unix:///a%20b%25?socket=/a%20b%26c%3fd%c3%bc%ff",
            "nbds://h:1/?tls-certificates=/a%26b&tls-hostname=x.y&tls-verify=false",
        ] {
            let parsed: Uri = uri.parse().unwrap();
            assert_eq!(parsed.to_string(), uri);
        }
    }
}
