//! A reference device in memory: the simplest, slow implementation of the contract, which uses every freedom
//! of the contract at random.
//!
//! It has a volatile cache, a history of versions for each block, a virtual clock and a power switch.
//! Requests take a random time, so they overlap and overtake each other; at a power cut each block becomes
//! any version that the crash rules allow. With a [`Bug`] planted it breaks the contract in one way, and the
//! kit must notice.
//!
//! Everything random follows from [`ModelOptions::seed`].

mod bug;
mod device;
mod medium;
mod queue;
mod rig;
mod state;

pub use bug::Bug;
pub use device::{ModelDevice, ModelOptions};
pub use rig::ModelRig;

#[cfg(test)]
mod tests;
