//! Figures of a simulated drive, next to published ones of the real drive.
//!
//! Measurements run in virtual time directly on a [`Timing`](crate::timing::Timing), independent of its
//! implementation. Published figures are only used for comparison, never by the simulation.

pub mod flash;
pub mod hdd;
pub mod probe;
mod table;

pub use table::FigureRow;

use plumb_block::Bytes;

use crate::model::Model;

/// Maximum size at which a flash drive is measured: large enough for its SLC buffer.
const FLASH_SIZE_MAX: Bytes = Bytes::gib(64);

/// Returns the figures of a drive of `model` next to the published ones; empty if there are none. `seed`
/// determines the addresses.
pub fn measure(model: &Model, seed: u64) -> Vec<FigureRow> {
    if let Some(table) = hdd::table(model, seed) {
        return table;
    }
    let size = model.geometry.default_size.0.min(FLASH_SIZE_MAX);
    flash::FlashProbe { size, made: &|| model.timing(size, seed) }.table(&model.name)
}
