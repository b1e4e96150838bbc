//! Leftovers of killed plumb processes, and what became of them.

use super::StatusDocument;
use crate::document::restore::{LeftoverGroup, LeftoverOutcome, RestoreDocument};
use crate::outline::{Item, Page, Row};

impl StatusDocument for RestoreDocument {
    fn page(&self) -> Page {
        let rows = LeftoverGroup::from_leftovers(&self.left).into_iter().map(|group| {
            let outcome = match group.outcome {
                LeftoverOutcome::Left => "left",
                LeftoverOutcome::PutBack => "put back",
                LeftoverOutcome::InUse => "in use",
                LeftoverOutcome::Failed => "FAILED",
            };
            Row::new(outcome, &group.words())
        });
        let mut items = vec![Item::Rows(rows.collect())];
        if self.left.is_empty() {
            items.push(Item::text("no killed plumb has left anything"));
        }
        if !self.as_root {
            items.push(Item::text("not checked without root: policies of disks, tracing, block devices"));
        }
        Page::plain("plumb restore", items)
    }
}
