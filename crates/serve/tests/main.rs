//! The tests of this crate from outside. One program, so that it is linked once: a scenario a file, and what
//! they share.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod attach_conforms;
mod attach_control;
mod attach_ends;
mod attach_file_systems;
mod attach_support;
mod attach_unanswered;
mod client_conforms;
mod client_hostile;
mod client_real;
mod client_support;
mod nbd_server;
mod world;
