//! Conversion of the graph of nodes to the list of a path, in topological order.

use std::collections::BTreeMap;

use super::surveyor::Surveyor;
use crate::facts::{Mark, Node};
use crate::model::{Cache, LayerKind};

/// Name of the first layer of every path.
pub(super) const APPLICATION: &str = "application";
/// Name of the second layer.
pub(super) const PAGE_CACHE: &str = "page cache";

impl Surveyor<'_> {
    /// Returns the nodes of `path`, which leads to `top`, followed by everything from `top` down, in
    /// topological order.
    pub(super) fn nodes_under(&self, mut path: Vec<Node>, top: &str) -> Vec<Node> {
        let mut order = Order { nodes: &self.nodes, state: BTreeMap::new(), reversed: Vec::new() };
        order.visit(top);
        let place: BTreeMap<&str, usize> =
            order.reversed.iter().enumerate().map(|(place, node)| (node.name.as_str(), place)).collect();
        for (at, node) in order.reversed.iter().enumerate().rev() {
            let mut node = (*node).clone();
            // An edge to a node that is not further down the list would close a cycle; a node that is not in
            // the list is deeper than a survey goes.
            let (below, lost): (Vec<String>, Vec<String>) = std::mem::take(&mut node.below)
                .into_iter()
                .partition(|name| place.get(name.as_str()).is_some_and(|below| *below < at));
            node.below = below;
            for name in lost {
                let what =
                    format!("{name}, below {}, could not be followed: a cycle, or too deep", node.name);
                node.mark(Mark::Unseen { what });
            }
            path.push(node);
        }
        path
    }
}

/// Returns the application above the page cache.
pub(super) fn application() -> Node {
    let mut node = Node::new(LayerKind::Application, APPLICATION);
    node.cache = Cache::Volatile;
    node.below = vec![PAGE_CACHE.to_owned()];
    node.saw(
        "write(2)",
        "buffers of the application",
        "data that was not handed to write() ends with the process",
    );
    node
}

/// Returns the page cache above `top`.
pub(super) fn page_cache(top: &str) -> Node {
    let mut node = Node::new(LayerKind::PageCache, PAGE_CACHE);
    node.cache = Cache::Volatile;
    node.below = vec![top.to_owned()];
    node.saw(
        "write(2)",
        "returns once the data is in memory",
        "a power cut loses what was not synced; O_DIRECT goes past this layer",
    );
    node
}

#[derive(PartialEq, Eq)]
enum State {
    Open,
    Done,
}

struct Order<'a> {
    nodes: &'a BTreeMap<String, Node>,
    state: BTreeMap<&'a str, State>,
    reversed: Vec<&'a Node>,
}

impl<'a> Order<'a> {
    /// Visits depth first; a node is added after all nodes below it. A node that is still open is part of a
    /// cycle.
    fn visit(&mut self, name: &str) {
        let Some((name, node)) = self.nodes.get_key_value(name) else { return };
        if self.state.contains_key(name.as_str()) {
            return;
        }
        self.state.insert(name, State::Open);
        for below in &node.below {
            self.visit(below);
        }
        self.state.insert(name, State::Done);
        self.reversed.push(node);
    }
}
