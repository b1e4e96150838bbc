//! Programs that use the crates of plumb as libraries. Each is one file in `src/bin`:
//!
//! - `crash_states`: every state that a power cut may leave after ten commands of a journal.
//! - `serve_device`: a device of one's own, served over NBD.
