//! Experiments: the levels of a factor measured in interleaved blocks, compared, and the difference
//! explained.
//!
//! ```text
//! design ──order of blocks, looks──► run, course ──each block a span of a trial──► block ──► judge ──► ComparisonDocument
//!                                     │                                                 │
//!   setting ◄──set────────────────────┘            statistics, outcome, explanation ◄───┘   pure
//!      └──levels set on the machine: each span opens its targets, and closes them before the next is set
//! ```
//!
//! Invariants:
//! 1. The unit of analysis is the block, never the operation: operations of one block depend on one another.
//! 2. The order of the levels in each round is drawn from the seed, balanced; the test draws from the set of
//!    the orders that the design could have drawn.
//! 3. The looks at the results are fixed before the first block that counts, and the error is divided among
//!    them.
//! 4. Each pair of levels has one outcome: different, equivalent, or no difference that this experiment could
//!    find.

mod block;
pub mod cache_advice;
mod chapter_record;
mod course;
mod design;
mod experiment;
mod explanation;
mod factor;
mod gate;
mod host;
mod judge;
mod outcome;
mod pilot;
mod predict;
mod recorded;
mod run;
pub mod setting;
mod shape;
pub mod statistics;
pub mod study;
mod workload;

pub use block::{block_of_hosts, figure};
pub use design::{Design, Look, Terms, confidence, percent};
pub use experiment::{Experiment, Extent, Level, LevelError};
pub use factor::{Factor, FindMachine, SettingWanted};
pub use gate::Gate;
pub use judge::{Question, document};
pub use outcome::{Judgement, judge_pairs};
pub use pilot::pilot_problem;
pub use predict::{PRACTICE, Spread};
pub use recorded::{Unlike, compare_recorded, recorded_figure};
pub use run::{Chapter, run};
pub use workload::{ReadWords, Workload};
