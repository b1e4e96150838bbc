//! Programs that use the crates of plumb as libraries. Each is one file in `src/bin`:
//!
//! - `load_drive`: a load on a simulated drive, in virtual time.
//! - `crash_states`: every state that a power cut may leave after ten commands of a journal.
//! - `serve_device`: a device of one's own, served over NBD.
