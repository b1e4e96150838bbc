//! Write path as a tree: one line for each layer, from the application down.
//!
//! The sign before a name shows whether a flush arrives there. Equal layers side by side share a line.

use std::collections::HashSet;

use plumb_path::WritePath;
use plumb_text::printable;

use super::Style;
use super::pen::{self, Ink};
use super::table::{Cell, Side, Table};
use super::wrap::{columns, hang, start};
use crate::levels::{self, Arrival, FsyncState, Levels, Node};
use crate::wording;

/// Width from which kinds and marks are shown.
const WIDE_FROM: usize = 84;
/// Maximum length of names and kinds. Longer ones are cut.
const NAME_MAX: usize = 26;

/// Returns the tree of `path`.
pub(super) fn path_tree(path: &WritePath, style: Style) -> String {
    let wide = style.columns() >= WIDE_FROM;
    let mut out = path_table(path, wide).show(style);
    if !wide {
        for (index, text) in marks(path) {
            let name = printable(&path.layers[index].name);
            out.push_str(&hang("  ", &format!("{text} {name}"), style.columns()));
        }
    }
    if let Some((ink, words)) = unsettled(path) {
        out.push_str(&style.ink_lines(ink, &hang("  ", &printable(words), style.columns())));
    }
    out
}

/// Returns the text to show if fsync is not known to make data durable.
pub(crate) fn unsettled(path: &WritePath) -> Option<(Ink, &str)> {
    match (levels::synced(path), levels::cause(path)) {
        (FsyncState::Durable(_), _) => None,
        (FsyncState::Lost | FsyncState::Unknown, Some(cause)) => Some((Ink::Red, &cause.sentence)),
        (FsyncState::Lost, None) => {
            Some((Ink::Red, "When fsync has returned, nothing is known to be durable."))
        }
        (FsyncState::NoWrites, _) => Some((Ink::Dim, &path.durable_at.sentence)),
        (FsyncState::Unknown, None) => {
            Some((Ink::Dim, "Whether data is durable when fsync has returned cannot be seen from here."))
        }
    }
}

/// Returns the tree of `path` as a table, with kinds and marks if it is `wide`.
pub(crate) fn path_table(path: &WritePath, wide: bool) -> Table {
    let mut head = vec![("layer", Side::Left)];
    if wide {
        head.push(("kind", Side::Left));
    }
    head.extend([("cache", Side::Left), ("flush", Side::Left), ("FUA", Side::Left)]);
    let mut tree =
        Tree { path, levels: Levels::new(path), wide, table: Table::new(&head), seen: HashSet::new() };
    for index in 0..path.layers.len() {
        tree.layer(index, Lead { own: "", below: "" });
    }
    tree.table
}

/// Text before a layer's name, and before the names of the layers below it.
#[derive(Clone, Copy)]
struct Lead<'a> {
    own: &'a str,
    below: &'a str,
}

struct Tree<'a> {
    path: &'a WritePath,
    levels: Levels,
    wide: bool,
    table: Table,
    seen: HashSet<usize>,
}

impl Tree<'_> {
    /// Adds layer `index` and everything below it, unless it was added before.
    fn layer(&mut self, index: usize, lead: Lead<'_>) {
        let Some((level, place)) = self.levels.position(index) else { return };
        let node = self.levels.levels[level][place].clone();
        if !self.seen.insert(node.members[0]) {
            return;
        }
        self.line(&node, lead.own);
        let mut below: Vec<usize> = Vec::new();
        for child in node.members.iter().flat_map(|member| &self.levels.below[*member]) {
            let Some((level, place)) = self.levels.position(*child) else { continue };
            let first = self.levels.levels[level][place].members[0];
            if !below.contains(&first) && !self.seen.contains(&first) {
                below.push(first);
            }
        }
        let branches = below.len() > 1;
        for (number, child) in below.iter().enumerate() {
            let last = number + 1 == below.len();
            let (own, under) = match (branches, last) {
                (false, _) => (lead.below.to_owned(), lead.below.to_owned()),
                (true, false) => (format!("{}├ ", lead.below), format!("{}│ ", lead.below)),
                (true, true) => (format!("{}└ ", lead.below), format!("{}  ", lead.below)),
            };
            self.layer(*child, Lead { own: &own, below: &under });
        }
    }

    fn line(&mut self, node: &Node, lead: &str) {
        let first = node.members[0];
        let layer = &self.path.layers[first];
        let sign = match node.arrival {
            _ if first == 0 => " ",
            Arrival::Yes => "↓",
            Arrival::Unsure => "?",
            Arrival::No => "✕",
        };
        let name = printable(&layer.name);
        let name =
            if node.members.len() > 1 { format!("{} × {name} …", node.members.len()) } else { name };
        let mut cells = vec![Cell::plain(format!("{lead}{sign} {}", cut(&name)))];
        if self.wide {
            let kind = wording::kind(layer.kind);
            cells.push(Cell::inked(Ink::Dim, if kind == layer.name { "" } else { kind }));
        }
        cells.push(Cell::inked(pen::cache(layer.cache), wording::cache(layer.cache)));
        cells.push(Cell::inked(pen::flush(layer.flush), wording::flush(layer.flush)));
        cells.push(Cell::inked(pen::fua(layer), wording::fua(layer)));
        if self.wide {
            let here: Vec<&str> = marks(self.path)
                .into_iter()
                .filter(|(at, _)| node.members.contains(at))
                .map(|mark| mark.1)
                .collect();
            let text = match here.as_slice() {
                [] => String::new(),
                [WRITE] => "← write returns".to_owned(),
                [FSYNC] => "← durable when fsync returns".to_owned(),
                _ => "← write returns; durable".to_owned(),
            };
            cells.push(Cell::inked(Ink::Green, text));
        }
        self.table.row(cells);
    }
}

const WRITE: &str = "When write has returned, data is in";
const FSYNC: &str = "When fsync has returned, data is durable in";

/// Returns the layers that hold a write when its call has returned, and after fsync.
fn marks(path: &WritePath) -> Vec<(usize, &'static str)> {
    let durable = path.durable_at.fsync.as_deref().and_then(|name| levels::named(path, name));
    let acknowledged = levels::acknowledged_at(path).map(|index| (index, WRITE));
    acknowledged.into_iter().chain(durable.map(|index| (index, FSYNC))).collect()
}

fn cut(name: &str) -> String {
    if columns(name) <= NAME_MAX {
        return name.to_owned();
    }
    format!("{}…", start(name, NAME_MAX - 1))
}
