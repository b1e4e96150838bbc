//! Fate of FLUSH and FUA at every layer of a path.

use std::collections::BTreeMap;

use crate::facts::{KernelFua, KernelView, Mark, Node};
use crate::model::{Cache, Flush, Fua, LayerKind};

/// A path with the computed fate of flushes.
pub(crate) struct Flow<'a> {
    nodes: &'a [Node],
    below: Vec<Vec<usize>>,
    above: Vec<Vec<usize>>,
    /// Cache at or below each node, as far as this machine can see.
    held: Vec<Cache>,
    /// Cache at or below each node for direct writes that are acknowledged but not flushed. A layer that can
    /// find such data only with metadata written at a flush is not known to keep it.
    kept: Vec<Cache>,
    flush: Vec<Flush>,
}

impl<'a> Flow<'a> {
    pub(crate) fn new(nodes: &'a [Node]) -> Self {
        let places: BTreeMap<&str, usize> =
            nodes.iter().enumerate().map(|(index, node)| (node.name.as_str(), index)).collect();
        let below: Vec<Vec<usize>> = nodes
            .iter()
            .enumerate()
            .map(|(index, node)| {
                let places = node.below.iter().filter_map(|name| places.get(name.as_str()).copied());
                places.filter(|place| *place > index).collect()
            })
            .collect();
        let mut above = vec![Vec::new(); nodes.len()];
        for (index, places) in below.iter().enumerate() {
            for place in places {
                above[*place].push(index);
            }
        }
        let none = vec![Cache::None; nodes.len()];
        let mut flow = Self { nodes, below, above, held: none.clone(), kept: none, flush: Vec::new() };
        for index in (0..nodes.len()).rev() {
            flow.held[index] = flow.hold(index);
            flow.kept[index] = flow.keep(index);
        }
        flow.flush = (0..nodes.len()).map(|index| flow.fate(index)).collect();
        flow
    }

    pub(crate) fn nodes(&self) -> impl Iterator<Item = (usize, &'a Node)> {
        self.nodes.iter().enumerate()
    }

    pub(crate) fn node(&self, index: usize) -> &'a Node {
        &self.nodes[index]
    }

    pub(crate) fn flush(&self, index: usize) -> Flush {
        self.flush[index]
    }

    /// Returns the cache held at or below the node.
    pub(crate) fn held(&self, index: usize) -> Cache {
        self.held[index]
    }

    /// Returns the cache of the layer itself, or for a write-back cache that of its log.
    pub(crate) fn cache(&self, index: usize) -> Cache {
        let node = &self.nodes[index];
        let Some(log) = node.log() else { return node.cache };
        let own = if log.is_hidden { worse(node.cache, Cache::Unknown) } else { node.cache };
        self.log(index).map(|(leg, _)| self.kept[leg]).fold(own, worse)
    }

    /// Returns the nodes that hold the log of a write-back cache.
    pub(crate) fn log(&self, index: usize) -> impl Iterator<Item = (usize, &'a Node)> {
        let on = self.nodes[index].log().map_or(&[][..], |log| &log.on);
        self.below(index).filter(|(_, node)| on.contains(&node.name))
    }

    /// Returns the fate that a flush of the log would have, if the user vouches that the log needs none;
    /// `None` for other nodes.
    pub(crate) fn vouched(&self, index: usize) -> Option<Flush> {
        self.nodes[index].log().filter(|log| !log.is_flushed).map(|_| ended(self.cache(index)))
    }

    /// Returns the nodes directly below.
    pub(crate) fn below(&self, index: usize) -> impl Iterator<Item = (usize, &'a Node)> {
        self.below[index].iter().map(|place| (*place, &self.nodes[*place]))
    }

    /// Returns the index of the first layer whose kind satisfies `wanted`.
    pub(crate) fn first(&self, wanted: impl Fn(LayerKind) -> bool) -> Option<usize> {
        self.nodes.iter().position(|node| wanted(node.kind))
    }

    /// Returns the fate of FUA at the node: dropped like flushes, native if the driver supports it.
    pub(crate) fn fua(&self, index: usize) -> Fua {
        let node = &self.nodes[index];
        if let Some((_, fua)) = of_host(node) {
            return fua;
        }
        match self.flush[index] {
            Flush::Dropped | Flush::Absorbed => return Fua::Dropped,
            Flush::Unknown => return Fua::Unknown,
            Flush::Forwarded => {}
        }
        match (node.queue, node.fua) {
            (KernelView::NoQueue, KernelFua::No) => Fua::Emulated,
            // A layer without a queue passes on whatever it receives.
            (KernelView::NoQueue, _) => match node.kind {
                LayerKind::Hypervisor | LayerKind::Remote | LayerKind::Fuse | LayerKind::Unknown => {
                    Fua::Unknown
                }
                _ => Fua::Native,
            },
            (_, KernelFua::Yes) => Fua::Native,
            (_, KernelFua::No) => Fua::Emulated,
            (_, KernelFua::Unknown) => Fua::Unknown,
        }
    }

    /// Returns the most volatile cache of a node and everything below: none if each write is flushed. Caches
    /// of a hypervisor, server or adapter are reported by `unknown_below` instead: here the disk's own claim
    /// counts, on which this kernel can act.
    fn hold(&self, index: usize) -> Cache {
        let node = &self.nodes[index];
        if node.marks.contains(&Mark::FlushesWrites) {
            return Cache::None;
        }
        let own = if speaks_for_itself(node.kind) { Cache::None } else { node.cache };
        self.below[index].iter().map(|below| self.held[*below]).fold(own, worse)
    }

    fn keep(&self, index: usize) -> Cache {
        let node = &self.nodes[index];
        let is_found = speaks_for_itself(node.kind) || node.writes_in_place();
        let own = worse(self.held[index], if is_found { Cache::None } else { Cache::Unknown });
        self.below[index].iter().map(|below| self.kept[*below]).fold(own, worse)
    }

    fn fate(&self, index: usize) -> Flush {
        let node = &self.nodes[index];
        if let Some((flush, _)) = of_host(node) {
            return flush;
        }
        let mut fate = self.fate_by_queue(index);
        for mark in &node.marks {
            let by_mark = match mark {
                // There is no device to flush.
                Mark::InMemory
                | Mark::KeepsNothing
                | Mark::SyncsOmitted { .. }
                | Mark::SyncsPreloaded { .. }
                | Mark::NoFlushOffered { .. } => Flush::Dropped,
                // The journal's disk is flushed, but perhaps not the data's disk.
                Mark::ExternalJournal { .. } => match ended(self.held_below(index)) {
                    Flush::Dropped => Flush::Unknown,
                    other => other,
                },
                Mark::BarriersOff { .. } | Mark::SendsNoFlush { .. } | Mark::NeverFlushed { .. } => {
                    ended(self.held_below(index))
                }
                Mark::Log(_) => self.vouched(index).unwrap_or(Flush::Forwarded),
                Mark::IgnoresFlush => ended(self.held[index]),
                Mark::SwallowsFlush { .. } => ended(self.held_above(index)),
                Mark::MaySwallowFlush { .. } => match ended(self.held_above(index)) {
                    Flush::Dropped => Flush::Unknown,
                    other => other,
                },
                // An unknown target or a missing table; without a table there are no marks.
                Mark::Unseen { .. } if node.kind == LayerKind::DmOther || node.is_zfs() => Flush::Unknown,
                Mark::NoCachingPage | Mark::NoFlushCommand if node.queue == KernelView::WriteThrough => {
                    ended(self.held[index])
                }
                _ => continue,
            };
            if weight(by_mark) > weight(fate) {
                fate = by_mark;
            }
        }
        fate
    }

    fn fate_by_queue(&self, index: usize) -> Flush {
        let node = &self.nodes[index];
        match (node.queue, node.kind) {
            (KernelView::WriteThrough, _) => ended(self.held[index]),
            (KernelView::WriteBack, _) => Flush::Forwarded,
            (_, LayerKind::Hypervisor | LayerKind::Remote | LayerKind::Fuse | LayerKind::Unknown) => {
                Flush::Unknown
            }
            (KernelView::NoQueue, _) => Flush::Forwarded,
            (KernelView::Unknown, _) => Flush::Unknown,
        }
    }

    fn held_below(&self, index: usize) -> Cache {
        let below = self.below[index].iter().map(|below| self.held[*below]).fold(Cache::None, worse);
        let unseen =
            self.below[index].is_empty() || self.below(index).any(|(_, node)| speaks_for_itself(node.kind));
        if unseen { worse(below, Cache::Unknown) } else { below }
    }

    /// Returns the cache of the disks on an adapter.
    fn held_above(&self, index: usize) -> Cache {
        self.above[index].iter().map(|above| self.nodes[*above].cache).fold(Cache::None, worse)
    }
}

/// Returns the fates of FLUSH and FUA at a layer of the host, by the host's own survey.
fn of_host(node: &Node) -> Option<(Flush, Fua)> {
    node.marks.iter().find_map(|mark| match mark {
        Mark::OfHost { flush, fua } => Some((*flush, *fua)),
        _ => None,
    })
}

/// Returns true for layers beyond this kernel's control.
fn speaks_for_itself(kind: LayerKind) -> bool {
    matches!(kind, LayerKind::Hypervisor | LayerKind::Remote | LayerKind::Controller)
}

/// Returns the fate of a flush that ends at a node with this cache at or below it.
fn ended(held: Cache) -> Flush {
    match held {
        Cache::Volatile => Flush::Dropped,
        Cache::Unknown => Flush::Unknown,
        Cache::None | Cache::Protected => Flush::Absorbed,
    }
}

fn worse(one: Cache, other: Cache) -> Cache {
    let rank = |cache| match cache {
        Cache::None => 0,
        Cache::Protected => 1,
        Cache::Unknown => 2,
        Cache::Volatile => 3,
    };
    if rank(one) >= rank(other) { one } else { other }
}

fn weight(flush: Flush) -> u8 {
    match flush {
        Flush::Forwarded => 0,
        Flush::Absorbed => 1,
        Flush::Unknown => 2,
        Flush::Dropped => 3,
    }
}
