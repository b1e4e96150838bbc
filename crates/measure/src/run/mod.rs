//! Run directories: every run is kept, so that it can be reported again without asking a device.
//!
//! ```text
//! manifest.json    what was run, where, with which seed; whether it is complete
//! result.json      the document of the run; rewritten whole after each phase
//! hist.hlog        HDR interval log, one line for each latency of each phase
//! timeseries.csv   one line for each bucket of each phase
//! report.html      and other exports, written beside
//! ```
//!
//! What a crash may leave, file by file. `manifest.json` and `result.json` are replaced by renaming a synced
//! temporary file, so each is whole: the old one or the new one. `hist.hlog` and `timeseries.csv` only grow;
//! a crash or a full disk may leave a last line without its end, which readers leave out. The status in the
//! manifest stays `running` until the run says otherwise, so a run that was killed is seen as such.

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
