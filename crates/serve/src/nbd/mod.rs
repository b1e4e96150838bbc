//! The network block device protocol: bytes ([`wire`]), and any device as a [`server`] of it.

pub mod client;
mod input;
mod output;
pub mod server;
pub mod tls;
mod transport;
mod turn;
pub mod uri;
pub mod wire;

pub use transport::Transport;
pub use turn::{Turn, Wants};
