//! A connection's socket, plain first, encrypted if the client asks for it.

use std::io::{self, IoSlice, IoSliceMut};
use std::sync::Arc;
use std::time::Instant;

use super::transport::{Patience, Socket, Transport, Wants};
use crate::nbd::tls::TlsSocket;

/// Plain or encrypted.
pub(super) enum Stream {
    Plain(Socket),
    Encrypted(Box<TlsSocket>),
}

impl Transport for Stream {
    fn receive(&mut self, into: &mut [IoSliceMut<'_>], patience: Patience) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.receive(into, patience),
            Self::Encrypted(socket) => socket.receive(into, patience),
        }
    }

    fn send(&mut self, from: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.send(from),
            Self::Encrypted(socket) => socket.send(from),
        }
    }

    fn hand_over(&mut self) -> io::Result<bool> {
        match self {
            Self::Plain(socket) => socket.hand_over(),
            Self::Encrypted(socket) => socket.hand_over(),
        }
    }

    fn wait(&mut self, wants: Wants<'_>) -> io::Result<()> {
        match self {
            Self::Plain(socket) => socket.wait(wants),
            Self::Encrypted(socket) => socket.wait(wants),
        }
    }

    fn encrypt(&mut self, config: &Arc<rustls::ServerConfig>, until: Instant) -> io::Result<()> {
        let Self::Plain(socket) = self else { return Err(io::ErrorKind::AlreadyExists.into()) };
        let encrypted = TlsSocket::accept(&socket.fd, config, until)?;
        *self = Self::Encrypted(Box::new(encrypted));
        Ok(())
    }
}
