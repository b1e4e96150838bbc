//! Figures of a simulated drive, beside those that are published about the real one.
//!
//! Probes run in virtual time straight on a [`Timing`](crate::timing::Timing): they know nothing of what it
//! is made of, and the published figures are only compared with, never used by the simulation.

pub mod flash;
pub mod hdd;
pub mod probe;
mod table;

pub use table::FigureRow;

use plumb_block::Bytes;

use crate::model::Model;

/// A drive of flash is probed at this size where the model's own is larger: big enough for its SLC buffer.
const FLASH_SIZE_MAX: Bytes = Bytes::gib(64);

/// Returns the figures of a drive of `model`, beside those that are published; empty if none are. `seed`
/// chooses the addresses.
pub fn measure(model: &Model, seed: u64) -> Vec<FigureRow> {
    if let Some(table) = hdd::table(model, seed) {
        return table;
    }
    let size = model.geometry.default_size.0.min(FLASH_SIZE_MAX);
    flash::FlashProbe { size, made: &|| model.timing(size, seed) }.table(&model.name)
}
