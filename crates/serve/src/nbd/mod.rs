//! The network block device protocol: bytes ([`wire`]), and any device as a [`server`] of it.

pub mod client;
pub mod server;
pub mod tls;
pub mod uri;
pub mod wire;
