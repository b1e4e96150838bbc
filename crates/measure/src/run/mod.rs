//! Run directories: every run is recorded, so that it can be reported again without querying a device.
//!
//! ```text
//! manifest.json    what was run, where, with which seed; whether it is complete
//! result.json      the document of the run; rewritten whole after each phase
//! hist.hlog        HDR interval log, one line for each latency of each phase
//! timeseries.csv   one line for each bucket of each phase
//! report.html      and other exports, written beside
//! ```
//!
//! State after a crash, file by file. `manifest.json` and `result.json` are replaced by renaming a synced
//! temporary file, so each is either the complete old or the complete new one. `hist.hlog` and
//! `timeseries.csv` only grow; a crash or a full disk may leave an unterminated last line, which readers
//! ignore. The status in the manifest stays `running` until the run ends, which reveals a killed run.

pub mod directory;
pub mod hlog;
pub mod manifest;
pub mod out;
pub mod recording;
pub mod timeseries;

pub use directory::RunDirectory;
pub use hlog::TaggedHistogram;
pub use manifest::{DeviceIdentity, Manifest, RunStatus};
pub use out::Out;
pub use recording::Recording;
pub use timeseries::TimeseriesRow;
