//! The documents of `plumb prove` beside proofs: of a trace, of real power cuts, of a replayed state. Those
//! that belong to the prover are here as far as reports show them, as they stand in the JSON document.

use std::collections::BTreeMap;

use plumb_block::Bytes;
use serde::{Deserialize, Serialize};

/// `plumb prove trace`: what a program left without a sync.
#[derive(Debug, Deserialize)]
pub struct TraceShown {
    pub(crate) beneath: String,
    pub(crate) ended: String,
    pub(crate) failed_writes: Option<u64>,
    pub(crate) findings: Vec<TraceFindingShown>,
    pub(crate) synced: BTreeMap<String, u64>,
    pub(crate) not_seen: BTreeMap<String, u64>,
    pub(crate) states: Option<TraceStatesShown>,
}

/// States that a power cut may leave of a traced program.
#[derive(Debug, Deserialize)]
pub(crate) struct TraceStatesShown {
    pub(crate) explored: u64,
    pub(crate) failing: u64,
    pub(crate) incomplete_because: Option<String>,
    pub(crate) failures: Vec<TraceFailureShown>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct TraceFailureShown {
    pub(crate) class: String,
    pub(crate) states: u64,
    pub(crate) words: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct TraceFindingShown {
    pub(crate) path: String,
    pub(crate) sentence: String,
}

/// `plumb prove verify`: what is there after a cut, compared with what the witness recorded.
#[derive(Debug, Deserialize)]
pub struct VerifyShown {
    pub(crate) headline: String,
    pub(crate) run: String,
    pub(crate) acknowledged: u64,
    pub(crate) blocks_read: u64,
    pub(crate) unreadable_at_risk: u64,
    pub(crate) oldest_loss: Option<f64>,
    pub(crate) examples: Vec<ExampleShown>,
}

/// A block that is not as it should be.
#[derive(Debug, Deserialize)]
pub(crate) struct ExampleShown {
    pub(crate) class: String,
    pub(crate) offset: Bytes,
    pub(crate) write: Option<u64>,
    pub(crate) before_cut: Option<f64>,
    pub(crate) found_write: Option<u64>,
    pub(crate) found_run: Option<String>,
    pub(crate) found_offset: Option<Bytes>,
}

/// `plumb prove campaign`: many cuts, each verified.
#[derive(Debug, Deserialize)]
pub struct CampaignShown {
    pub(crate) headline: String,
    pub(crate) cycles_wanted: u64,
    pub(crate) clean: u64,
    pub(crate) losses: u64,
    pub(crate) incomplete_because: Option<String>,
    pub(crate) cycles: Vec<CycleShown>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct CycleShown {
    pub(crate) number: u64,
    pub(crate) result: String,
    pub(crate) because: String,
}

/// `plumb prove replay`: a failing state put before the checker again.
#[derive(Debug, Serialize, Deserialize)]
pub struct ProveReplay {
    /// [`ProveReplay::SCHEMA`].
    pub schema: String,
    /// Class of the failure in the proof.
    pub class: String,
    /// The acknowledgement that had to be found.
    pub required: Option<u64>,
    /// True if it fails as it did.
    pub reproduced: bool,
    /// Finding of the checker now; null if it finds nothing.
    pub found: Option<String>,
    /// Message of the checker.
    pub words: Option<String>,
}

impl ProveReplay {
    /// The name of the JSON document.
    pub const SCHEMA: &str = "plumb/prove-replay/1";
}
