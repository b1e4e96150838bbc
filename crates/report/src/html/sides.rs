//! The table of application beside storage, each load with its balance.

use crate::balance::Balance;
use crate::document::{RunDocument, Sides};
use crate::figures::{SideRow, side_rows};
use crate::headline::{capital, sentence};
use crate::printable::printable;
use crate::sentences;

/// One load.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Load {
    /// `Random read, direct`.
    pub(super) title: String,
    /// Block, depth and range.
    pub(super) how: String,
    /// Why it was not measured; empty if it was.
    pub(super) failed: String,
    /// Application, then storage.
    pub(super) rows: Vec<SideRow>,
    /// Where its bytes were, or why that is not known.
    pub(super) balances: Vec<BalanceView>,
}

/// A balance as a bar and in words.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct BalanceView {
    /// The parts of it; none if it is not known.
    pub(super) parts: Vec<Part>,
    /// It in words, or why there is none.
    pub(super) sentence: String,
}

/// One part of a balance.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Part {
    /// Its class in the style sheet.
    pub(super) class: &'static str,
    /// Its share in hundredths.
    pub(super) percent: String,
    /// What it is, with its size.
    pub(super) text: String,
}

/// The targets, and those of each span together. Those that measure what a durable write costs have a table of their own.
pub(super) fn targets(document: &RunDocument) -> Vec<Load> {
    let sharing = document.sharing();
    let labels = document.labels();
    let mut loads: Vec<Load> = document
        .targets
        .iter()
        .enumerate()
        .filter(|(_, target)| !sentences::is_method(document, target))
        .map(|(index, target)| Load {
            title: printable(&labels[index]),
            how: printable(&sentences::description(document, target)),
            failed: target.failed_because.as_deref().map(printable).unwrap_or_default(),
            rows: side_rows(&target.sides),
            balances: if sharing[index] { Vec::new() } else { balances(&target.sides) },
        })
        .collect();
    // What targets on the same devices moved can only be told of all of them.
    let shared = sharing.contains(&true);
    loads.extend(document.sums().into_iter().map(|(title, sides)| Load {
        title: capital(&title),
        how: String::new(),
        failed: String::new(),
        rows: side_rows(sides),
        balances: if shared { balances(sides) } else { Vec::new() },
    }));
    loads
}

fn balances(sides: &Sides) -> Vec<BalanceView> {
    if sides.storage.is_none() {
        return vec![BalanceView::unknown(sides.storage_unknown_because.as_deref())];
    }
    [(false, &sides.read), (true, &sides.write)]
        .into_iter()
        .filter_map(|(write, direction)| Balance::of(write, direction.bytes, sides))
        .map(|balance| BalanceView::of(&balance))
        .collect()
}

impl BalanceView {
    fn of(balance: &Balance) -> Self {
        let part = |(class, share, text): (&'static str, f64, String)| Part {
            class,
            percent: format!("{:.2}", share * 100.0),
            text,
        };
        let parts: Vec<Part> = balance.parts().into_iter().map(part).collect();
        Self { parts, sentence: balance.sentence() }
    }

    fn unknown(why: Option<&str>) -> Self {
        let why = sentence(&printable(why.unwrap_or("the devices could not be read")));
        Self::words(&format!("What the storage saw is not known: {why}"))
    }

    fn words(sentence: &str) -> Self {
        Self { parts: Vec::new(), sentence: sentence.to_owned() }
    }
}
