//! Serves memory, or nothing at all, on a unix socket: to measure the server against others.
//!
//! `serve null|memory SIZE SOCKET`, until it is killed.

use std::path::Path;
use std::process::ExitCode;

use plumb_block::Bytes;
use plumb_serve::nbd::server::{Export, Listener, OWNER_ONLY, Options, Server};

mod support;
use support::memory::{Memory, Shared};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [kind, size, socket] => match serve(kind, size, Path::new(socket)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("serve: {error}");
                ExitCode::FAILURE
            }
        },
        _ => {
            eprintln!("usage: serve null|memory SIZE SOCKET");
            ExitCode::from(2)
        }
    }
}

fn serve(kind: &str, size: &str, socket: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let size: Bytes = size.parse()?;
    let memory = if kind == "null" { Memory::null(size) } else { Memory::new(size) };
    let export = Export {
        name: kind.to_owned(),
        description: "for measuring the server".to_owned(),
        device: std::sync::Arc::new(Shared(memory)),
        read_only: false,
    };
    let server = Server::new(vec![export], Options::default())?;
    server.serve(vec![Listener::unix(socket, OWNER_ONLY)?])?;
    Ok(())
}
