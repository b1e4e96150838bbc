//! What was seen: histograms, time series, recordings.
//!
//! Pure but for the reading and writing of run directories. Reports are functions of what lives here; no report asks
//! a live device again.

pub mod result;

pub use result::{
    ApplicationSide, FlushWrites, IoResult, Latency, Quality, SERIES_BUCKET, SeriesPoint, StorageSide,
    SyncMethod, SyncResult,
};
