//! Write-back caches of plumb as block devices of this machine. Durability depends on the mode of the cache
//! and the devices below it; its block device has no switchable write cache.

use plumb_linux::inventory::{Block, BlockKind};
use plumb_path::{AttachedCache, Cache, LayerKind};
use plumb_text::shell_word;

use super::standing::Paths;
use crate::gateway::Gateway;
use crate::state::FoundState;
use crate::view::{DeviceView, Protection, ProtectionRank, Refusal};

/// Way to change an attached cache.
pub(super) const CHANGED_BY: &str = "the mode of the cache (`plumb cache mode`)";

/// A disk below a cache.
pub(super) struct Disk {
    pub(super) name: String,
    /// True if plumb can change its write cache.
    pub(super) is_changeable: bool,
}

/// Returns the cache behind `block`, if it is one.
pub(super) fn find(gateway: &dyn Gateway, block: &Block) -> Option<AttachedCache> {
    let may_be = matches!(block.kind, BlockKind::Loop | BlockKind::Remote);
    may_be.then(|| AttachedCache::find(gateway.tree(), gateway.probe(), &block.name)).flatten()
}

/// Describes in `view` that the device is `cache`, and what can be changed instead: the mode of the cache,
/// and the `disks` below it.
pub(super) fn describe(view: &mut DeviceView, cache: &AttachedCache, paths: &Paths, disks: &[Disk]) {
    let below = paths.below(&view.name);
    let layers = [view.name.as_str()].into_iter().chain(below);
    let layer =
        layers.filter_map(|name| paths.layer(name)).find(|layer| layer.kind == LayerKind::WriteBackCache);
    let holds = layer.map_or(Cache::Unknown, |layer| layer.cache);
    let names = |is_changeable| {
        let those = disks.iter().filter(|disk| disk.is_changeable == is_changeable);
        those.map(|disk| disk.name.as_str()).collect::<Vec<_>>().join(", ")
    };
    let beneath = match (&*names(true), &*names(false)) {
        ("", "") => "the disks of its log and beneath it, none of which can be seen from here".to_owned(),
        ("", fixed) => format!(
            "see with `plumb policy show` why the write caches of the disks below it cannot be changed: {fixed}"
        ),
        (disks, "") => format!("the write caches of the disks below it: {disks}"),
        (disks, fixed) => format!(
            "the write caches of the disks below it: {disks} (not those of {fixed}: `plumb policy show` says why)"
        ),
    };
    let AttachedCache { name, mode } = &cache;
    let mode = mode
        .as_deref()
        .map_or_else(|| "in a mode that cannot be read".to_owned(), |mode| format!("in the mode {mode}"));
    let log = match (cache.is_protected(), holds) {
        (true, Cache::Volatile) => "its log is not flushed and is volatile, as far as its devices say",
        (true, Cache::Unknown) => "its log is not flushed; whether that is volatile is not known",
        (true, Cache::None | Cache::Protected) => {
            "its log is not flushed, and nothing says that it is volatile"
        }
        (false, Cache::Volatile) => "its log is volatile until a flush, which it is sent",
        (false, Cache::Unknown) => "whether its log is volatile is not known; it is sent flushes",
        (false, Cache::None | Cache::Protected) => "its log keeps what it acknowledges",
    };
    "cache".clone_into(&mut view.transport);
    view.model = Some(format!("write-back cache {name} of plumb, {mode}: {log}"));
    view.state = match holds {
        _ if cache.is_protected() => FoundState::Protected,
        Cache::Volatile => FoundState::On,
        Cache::None | Cache::Protected => FoundState::Off,
        Cache::Unknown => FoundState::Unknown,
    };
    view.device.wce_unknown_because = Some(
        "a cache of plumb has a mode instead, and its devices have write caches of their own".to_owned(),
    );
    view.protection = cache.is_protected().then(|| Protection {
        claim: format!("whoever set the mode protected of the cache {name}, for the devices of its log"),
        rank: ProtectionRank::AdministratorsWord,
        until: None,
    });
    CHANGED_BY.clone_into(&mut view.changeable_by);
    view.refusal = Some(Refusal::new(
        format!(
            "{} is the write-back cache {name} of plumb, {mode}: what is durable when is its mode, not a drive's write cache",
            view.name
        ),
        format!("change the mode (`plumb cache mode {} MODE`), or {beneath}", shell_word(name)),
    ));
}
