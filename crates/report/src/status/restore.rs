//! Leftovers of killed plumb processes, and their outcomes.

use super::Sections;
use crate::document::restore::{LeftoverGroup, LeftoverOutcome, RestoreDocument};
use crate::outline::{Item, Page, Row};

impl Sections for RestoreDocument {
    const TITLE: &str = "plumb restore";

    fn add_to(&self, page: &mut Page) {
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
        page.add("", items);
    }
}
