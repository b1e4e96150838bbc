//! The shipped disks.

use plumb_sim::model::{Model, Parameters};
use plumb_sim::timing::controller::{Controller, Protection};
use plumb_sim::timing::hdd::Hdd;

/// The models of disks.
pub(crate) const NAMES: [&str; 4] = ["ata-40gb", "nearline-4tb", "sas-15k", "he8-media-cache"];

/// Returns the number of sectors that the disk of `model` has.
pub(crate) fn sectors(model: &Model) -> u64 {
    let Parameters::Hdd { mechanics, .. } = &*model.parameters else {
        panic!("{} is not a disk", model.name)
    };
    mechanics.capacity.0.0 / 512
}

/// Returns a drive of `model` with its write cache on or off.
pub(crate) fn drive(model: &Model, wce: bool) -> Controller<Hdd> {
    let Parameters::Hdd { mechanics, controller } = &*model.parameters else {
        panic!("{} is not a disk", model.name)
    };
    Controller::new(controller, Hdd::new(mechanics, mechanics.capacity.0), wce, Protection::None)
}
