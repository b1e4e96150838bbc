//! Measurements: histograms, time series, storage counters, and run directories.
//!
//! Pure except for reading and writing run directories. Reports are functions of this data and never query a
//! live device again.

pub mod buckets;
pub mod error;
pub mod histogram;
mod median;
pub mod process;
pub mod result;
pub mod run;
pub mod series;
pub mod steadiness;
pub mod storage;
pub mod verified;
pub mod watch;

pub use buckets::Buckets;
pub use error::{Error, Result};
pub use histogram::Histogram;
pub use median::median;
pub use result::{
    ApplicationSide, Attribution, BytesBy, FlushWrites, FlushesOf, IoResult, Latency, Quality, SERIES_BUCKET,
    SeriesPoint, StorageSide, SyncResult,
};
pub use run::{DeviceIdentity, Manifest, Out, Recording, RunDirectory, RunStatus, TaggedHistogram};
pub use series::{COUNT_MAX, Series, SeriesEvent};
pub use steadiness::{Ramp, Steadiness};
pub use storage::{CountsOfWrites, NoDelta, WriteSizes, calibrate, storage_side};
pub use verified::{VerifyResult, WrongBlock, WrongKind};
pub use watch::{Reading, StorageWatch};
