//! Devices that cost nothing, so that a measurement shows the server and nothing else.

pub(crate) mod memory;
