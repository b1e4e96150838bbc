//! Application and storage side of each load, with its balance.

use super::escape::escape;
use super::table::{Group, grouped};
use crate::balance::Balance;
use crate::document::{RunDocument, Sides};
use crate::sentences;
use crate::terminal::run::groups;
use crate::terminal::tables::side_table_without;

/// Returns the table with the balances below each load; empty if nothing was measured.
pub(super) fn sides(document: &RunDocument) -> String {
    let sharing = document.sharing();
    let shown = document
        .targets
        .iter()
        .zip(&sharing)
        .filter(|(target, _)| target.failed_because.is_none() && !sentences::is_method(document, target));
    let mut beside: Vec<Group> = shown
        .map(|(target, shares)| Group {
            note: plumb_text::printable(&sentences::description(document, target)),
            after: if *shares { String::new() } else { balances(&target.sides) },
        })
        .collect();
    // The traffic of targets on the same devices is known only for all of them together.
    let shared = sharing.contains(&true);
    beside.extend(document.sums().into_iter().map(|(_, sides)| Group {
        after: if shared { balances(sides) } else { String::new() },
        ..Group::default()
    }));
    let groups = groups(document, usize::MAX);
    if groups.is_empty() { String::new() } else { grouped(&side_table_without(&groups, &[]), &beside) }
}

/// Returns the balances of `sides` as bars and in words.
fn balances(sides: &Sides) -> String {
    [(false, &sides.read), (true, &sides.write)]
        .into_iter()
        .filter_map(|(write, direction)| Balance::from_sides(write, direction.bytes, sides))
        .map(|balance| bar(&balance))
        .collect()
}

fn bar(balance: &Balance) -> String {
    let sentence = escape(&balance.sentence());
    let parts = balance.parts();
    let bars = parts
        .iter()
        .map(|(class, share, _)| format!(r#"<i class="{class}" style="width:{:.2}%"></i>"#, share * 100.0));
    let keys = parts.iter().filter(|_| parts.len() > 1);
    let keys =
        keys.map(|(class, _, text)| format!(r#"<span><i class="{class}"></i>{}</span>"#, escape(text)));
    format!(
        r#"<div class="balance" role="img" aria-label="{sentence}">{}</div><div class="key" aria-hidden="true">{}</div><p>{sentence}</p>"#,
        bars.collect::<String>(),
        keys.collect::<String>()
    )
}
