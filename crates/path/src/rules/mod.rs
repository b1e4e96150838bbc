//! The rules: from typed facts to a judged path. Pure functions; the same facts always give the same verdict.
//!
//! In order: [`flow`] says for every layer what becomes of FLUSH and FUA, [`durable`] where data is durable, and
//! [`traps`] and [`storage`] what is wrong or worth knowing. The rule behind all of them: a path is unsafe if any node
//! on it drops flushes while any node at or below it holds volatile data; the device and the kernel are both read, and
//! neither is trusted alone.

mod device;
mod durable;
mod finding;
mod flow;
mod storage;
mod traps;

use crate::facts::Node;
use crate::model::{Layer, WritePath};

pub(crate) use flow::Flow;

/// Judges one path. `nodes` are in order, each before all that are below it, the application first.
pub fn judge(target: &str, nodes: &[Node]) -> WritePath {
    let flow = Flow::of(nodes);
    let layers: Vec<Layer> =
        nodes.iter().enumerate().map(|(index, node)| layer(node, &flow, index)).collect();
    let unknown_below = durable::unknown_below(&flow);
    let mut findings = traps::findings(&flow);
    findings.extend(storage::findings(&flow));
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    WritePath {
        target: target.to_owned(),
        durable_at: durable::durable_at(&flow),
        unknown_below,
        layers,
        findings,
    }
}

fn layer(node: &Node, flow: &Flow<'_>, index: usize) -> Layer {
    Layer {
        kind: node.kind,
        name: node.name.clone(),
        identity: node.identity.clone(),
        cache: node.cache,
        flush: flow.flush(index),
        fua: flow.fua(index),
        evidence: node.evidence.clone(),
        below: node.below.clone(),
    }
}
