//! Choices of writeback for the further recordings of a program.

use plumb_block::mixed;
use plumb_report::document::proof::{Extent, Writeback};

use crate::file_system::FileSystem;

/// Returns the choices of writeback in order: those tried for every program, and their number. Random
/// mixtures follow without end.
pub(crate) fn plans(
    file_system: FileSystem,
    syncs: &[u64],
    seed: u64,
) -> (impl Iterator<Item = Writeback> + use<>, u64) {
    // A commit of btrfs writes all data first, as a checkpoint of F2FS does, which has no journal.
    let (extents, after): (&[Extent], _) = match file_system {
        FileSystem::Btrfs | FileSystem::F2fs => (&[Extent::Data, Extent::Everything], Extent::Everything),
        _ => (&Extent::ALL, Extent::DataAndJournal),
    };
    let mut all: Vec<Writeback> =
        extents.iter().map(|extent| Writeback::AtOnce { extent: *extent }).collect();
    all.extend(syncs.iter().map(|sync| Writeback::AfterSync { sync: *sync, extent: after }));
    let systematic = all.len() as u64;
    // Seeds of 32 bits are exact in every JSON parser.
    let mixture = move |number: u64| Writeback::Mixture { seed: mixed(seed ^ number) >> 32 };
    (all.into_iter().chain((0..).map(mixture)), systematic)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sync_call_has_a_recording_and_mixtures_follow() {
        let (plans, systematic) = plans(FileSystem::Ext4, &[1, 3], 7);
        let plans: Vec<Writeback> = plans.take(10).collect();
        assert_eq!(systematic, 6);
        assert_eq!(plans[0], Writeback::AtOnce { extent: Extent::Data });
        assert_eq!(plans[5], Writeback::AfterSync { sync: 3, extent: Extent::DataAndJournal });
        assert!(plans[6..].iter().all(|plan| matches!(plan, Writeback::Mixture { .. })), "{plans:?}");
        assert_ne!(plans[6], plans[7]);
    }
}
