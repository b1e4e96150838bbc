//! Text pages over HTTP/1.1 (RFC 9112), for Prometheus and curl: GET and HEAD, one connection at a time,
//! closed after its answer, to bound memory and threads.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use plumb_block::wait::is_readable_soon;
use plumb_block::{Clock as _, Nanos, RealClock};
use rustix::net::sockopt::{self, Timeout};

use crate::nbd::server::{ListenAddress, Listener};

/// Time that a client has for its request, and again to take the answer.
const CLIENT_TIME: Nanos = Nanos::secs(2);
/// Longest head of a request.
const HEAD_MAX: usize = 8 << 10;
/// Bytes that are written at once.
const PIECE: usize = 64 << 10;

/// Parses `ADDRESS:PORT` of this machine, or the path of a socket, prefixed with `unix:` or containing a
/// slash.
///
/// # Errors
/// If the text is neither.
pub fn parse_address(typed: &str) -> Result<ListenAddress, String> {
    let local = |port: &str| Some(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port.parse().ok()?));
    let path = typed.strip_prefix("unix:").or_else(|| typed.contains('/').then_some(typed));
    if let Some(path) = path.filter(|path| !path.is_empty()) {
        return Ok(ListenAddress::Unix(PathBuf::from(path)));
    }
    let bare = typed.strip_prefix("localhost:").or_else(|| typed.strip_prefix(':')).unwrap_or(typed);
    local(bare).or_else(|| typed.parse().ok()).map(ListenAddress::Tcp).ok_or_else(|| {
        "expected a port of this machine, an address with a port, or the path of a unix socket, such as 9950, 127.0.0.1:9950 or \
         /run/plumb/observe.sock"
            .to_owned()
    })
}

/// Returns the URL of the metrics that `listener` serves at `address`, for display.
pub fn metrics_url(address: &ListenAddress, listener: &Listener) -> String {
    match address {
        ListenAddress::Unix(path) => path.display().to_string(),
        ListenAddress::Tcp(address) => {
            format!("http://{}/metrics", listener.tcp_address().unwrap_or(*address))
        }
    }
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpPage {
    /// Media type of the body.
    pub content_type: &'static str,
    /// The text.
    pub body: String,
}

/// Serves pages until `stop` is true; `page` returns the page for a path, or `None` if it does not exist.
/// Slow or malformed requests end only their own connection.
///
/// # Errors
/// Fails as poll(2) does.
pub fn serve(
    listener: &Listener,
    stop: &AtomicBool,
    page: &dyn Fn(&str) -> Option<HttpPage>,
) -> io::Result<()> {
    while !stop.load(Ordering::Acquire) {
        if !is_readable_soon(listener.as_fd()).map_err(io::Error::other)? {
            continue;
        }
        // A client that left or does not read its answer does not affect others.
        if let Ok(socket) = listener.accept() {
            answer(socket, page).unwrap_or_default();
        }
    }
    Ok(())
}

/// Answers one request.
fn answer(socket: OwnedFd, page: &dyn Fn(&str) -> Option<HttpPage>) -> io::Result<()> {
    rustix::io::ioctl_fionbio(&socket, false)?;
    sockopt::set_socket_timeout(socket.as_fd(), Timeout::Recv, Some(CLIENT_TIME.into()))?;
    sockopt::set_socket_timeout(socket.as_fd(), Timeout::Send, Some(CLIENT_TIME.into()))?;
    let mut socket = File::from(socket);
    let response = response(&head(&mut socket)?, page);
    let clock = RealClock::start();
    for piece in response.as_bytes().chunks(PIECE) {
        socket.write_all(piece)?;
        if clock.now() > CLIENT_TIME {
            break;
        }
    }
    Ok(())
}

/// Reads the head of a request.
fn head(socket: &mut File) -> io::Result<String> {
    let clock = RealClock::start();
    let (mut head, mut piece) = (Vec::new(), [0; 1024]);
    while !head.windows(4).any(|end| end == b"\r\n\r\n") && head.len() < HEAD_MAX {
        let length = socket.read(&mut piece)?;
        if length == 0 || clock.now() > CLIENT_TIME {
            break;
        }
        head.extend_from_slice(&piece[..length]);
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

/// Returns the answer to a request.
fn response(head: &str, page: &dyn Fn(&str) -> Option<HttpPage>) -> String {
    let mut words = head.lines().next().unwrap_or_default().split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let is_http = words.next().is_some_and(|version| version.starts_with("HTTP/1."));
    let plain = |body: &str| HttpPage { content_type: "text/plain; charset=utf-8", body: body.to_owned() };
    let path = target.split('?').next().unwrap_or_default();
    let (status, page) = match (is_http && head.contains("\r\n\r\n"), method) {
        (false, _) => ("400 Bad Request", plain("expected a request of HTTP/1.1\n")),
        (true, "GET" | "HEAD") => match page(path) {
            Some(page) => ("200 OK", page),
            None => ("404 Not Found", plain("there is no such page; / lists the pages\n")),
        },
        (true, _) => ("405 Method Not Allowed", plain("expected GET or HEAD\n")),
    };
    let body = if method == "HEAD" { "" } else { &page.body };
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {}\r\nContent-Length: {}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n{body}",
        page.content_type,
        page.body.len()
    )
}

#[cfg(test)]
mod tests {
    use std::net::{SocketAddr, TcpStream};

    use super::*;

    fn page(path: &str) -> Option<HttpPage> {
        let body = path.strip_prefix("/is/")?.to_owned();
        Some(HttpPage { content_type: "text/plain", body })
    }

    /// Sends `request`, and returns the complete answer.
    fn asked(address: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn an_address_without_a_host_is_of_this_machine_alone() {
        let tcp = |address: &str| Ok(ListenAddress::Tcp(address.parse().unwrap()));
        for typed in ["9950", ":9950", "localhost:9950", "127.0.0.1:9950"] {
            assert_eq!(parse_address(typed), tcp("127.0.0.1:9950"), "{typed}");
        }
        assert_eq!(parse_address("[::1]:9950"), tcp("[::1]:9950"));
        assert_eq!(parse_address("0.0.0.0:9950"), tcp("0.0.0.0:9950"), "only where it is typed");
        for typed in ["/run/x", "unix:/run/x"] {
            assert_eq!(parse_address(typed), Ok(ListenAddress::Unix("/run/x".into())), "{typed}");
        }
        for typed in ["", "unix:", "host", "host:9950", "99999"] {
            assert!(parse_address(typed).is_err(), "{typed}");
        }
    }

    #[test]
    fn pages_are_answered_and_nonsense_harms_nobody() {
        let listener = Listener::tcp("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.tcp_address().unwrap();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| serve(&listener, &stop, &page));
            drop(TcpStream::connect(address).unwrap());
            let got = asked(address, "GET /is/here?x=1 HTTP/1.1\r\nHost: a\r\n\r\n");
            let head = asked(address, "HEAD /is/here HTTP/1.0\r\n\r\n");
            let answers = [
                ("GET /not HTTP/1.1\r\n\r\n", "HTTP/1.1 404 "),
                ("POST /is/here HTTP/1.1\r\n\r\n", "HTTP/1.1 405 "),
                ("\u{0}nonsense\r\n\r\n", "HTTP/1.1 400 "),
                ("GET /is/here SSH-2.0\r\n\r\n", "HTTP/1.1 400 "),
            ]
            .map(|(request, status)| (asked(address, request), status));
            stop.store(true, Ordering::Release);
            assert!(got.starts_with("HTTP/1.1 200 OK\r\n") && got.ends_with("\r\n\r\nhere"), "{got}");
            assert!(got.contains("Content-Length: 4\r\n"), "{got}");
            assert!(head.contains("Content-Length: 4\r\n") && head.ends_with("\r\n\r\n"), "{head}");
            for (answer, status) in answers {
                assert!(answer.starts_with(status), "{status}: {answer}");
            }
        });
    }
}
