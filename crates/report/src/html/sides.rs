//! The table of application beside storage, each load with its balance.

use plumb_measure::IoResult;

use crate::balance::Balance;
use crate::figures::{SideRow, side_rows};
use crate::printable::printable;
use crate::wording;

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
    /// Whether the balance is known.
    pub(super) has_parts: bool,
    /// Whether there are several parts, so that a key is needed.
    pub(super) has_key: bool,
    /// The parts of the balance.
    pub(super) parts: Vec<Part>,
    /// The balance in words, or why there is none.
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

/// The loads of `io`, in its order.
pub(super) fn loads(io: &[IoResult]) -> Vec<Load> {
    io.iter().map(load).collect()
}

fn load(io: &IoResult) -> Load {
    let (title, how) = wording::load(io);
    let balance = Balance::of(io);
    let failed = match (&io.application, &io.failed_because) {
        (_, Some(why)) => printable(why),
        (None, None) => "no figures were kept".to_owned(),
        (Some(_), None) => String::new(),
    };
    let parts = balance.as_ref().map_or_else(Vec::new, |balance| {
        let part = |(class, share, text): (&'static str, f64, String)| Part {
            class,
            percent: format!("{:.2}", share * 100.0),
            text,
        };
        balance.parts().into_iter().map(part).collect()
    });
    let sentence = match (&balance, &io.storage) {
        (Some(balance), _) => balance.sentence(),
        (None, None) => {
            let why = io.storage_unknown_because.as_deref().unwrap_or("the devices could not be read");
            format!("What the storage saw is not known: {}", crate::headline::sentence(&printable(why)))
        }
        (None, Some(_)) => "No operation completed.".to_owned(),
    };
    Load {
        title: printable(&title),
        how,
        failed,
        rows: side_rows(io.application.as_ref(), io.storage.as_ref()),
        has_parts: !parts.is_empty(),
        has_key: parts.len() > 1,
        parts,
        sentence,
    }
}
