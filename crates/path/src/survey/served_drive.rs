//! Simulated drives served by plumb: the server records the model behind the kernel's block device. Without
//! permission to read the record, only the kernel's view is available.

use plumb_state::{DriveRecord, UblkRecord, places};

use super::mounts::served_drive;
use super::surveyor::Surveyor;
use crate::facts::{Mark, Node};
use crate::model::{Cache, LayerKind};

impl Surveyor<'_> {
    /// Fills in `node` from the record of a simulated drive's server. Returns false if the record cannot be
    /// read or belongs to something else.
    pub(super) fn simulated_drive(&self, node: &mut Node, record: &str) -> bool {
        let text = self.tree.text(record).unwrap_or_default();
        let Some(drive) = DriveRecord::last_in(&text) else { return false };
        let DriveRecord { model, keeps_nothing, is_volatile, flush_lie } = drive;
        node.kind = LayerKind::SimulatedDrive;
        node.cache = if is_volatile { Cache::Volatile } else { Cache::None };
        let means = match (keeps_nothing, is_volatile) {
            (true, _) => "what is written is dropped, and reads return zeroes",
            (false, true) => "a power cut takes acknowledged data that was not flushed",
            (false, false) => "an acknowledged write is durable",
        };
        node.saw(record, format!("model {model}"), means);
        if keeps_nothing {
            node.mark(Mark::KeepsNothing);
        }
        if let Some(lie) = flush_lie {
            node.saw(record, format!("a flush {lie}"), "the drive says that the data is durable");
            node.mark(Mark::IgnoresFlush);
        }
        node.mark(Mark::ServedDrive { model });
        true
    }

    /// Returns the layer of the simulated drive behind the ublk device with this number; `None` if another
    /// device is behind it or the record cannot be read.
    pub(super) fn drive_of_ublk(&mut self, number: &str) -> Option<String> {
        let record = format!("{}/{number}", places::UBLK_RECORDS);
        let UblkRecord { name, .. } = UblkRecord::parse(&self.tree.text(&record).ok()?)?;
        let layer = served_drive(&name);
        let mut node = Node::new(LayerKind::SimulatedDrive, &layer);
        let is_drive = self.simulated_drive(&mut node, &record);
        is_drive.then(|| {
            self.ensure(&layer, |_| node);
            layer
        })
    }
}
