//! Devices outside the kernel as entries of the same document, based only on their own report. There is no
//! kernel view that could be wrong, and nothing for plumb to change on this machine.

use plumb_block::{Bytes, DeviceInfo, VolatileCache};
use plumb_path::{Cache, DeviceKind, Finding, LayerKind, Severity, Survey};

use super::attached_cache::CHANGED_BY;
use crate::state::FoundState;
use crate::view::{DeviceSide, DeviceView, Protection, ProtectionRank, Refusal};

/// Returns the view of the device called `name`. Its cache counts as `off` if the device reports none
/// enabled; only a simulated drive reveals whether one could be enabled.
pub fn foreign(name: &str, info: &DeviceInfo, kind: DeviceKind) -> DeviceView {
    let (transport, changeable_by) = match kind {
        DeviceKind::Simulated => ("sim", "whoever names it, or serves it (`plumb drive`)"),
        DeviceKind::Nbd => ("nbd", "whoever runs the server"),
        DeviceKind::Cache => ("cache", CHANGED_BY),
    };
    let (state, mut device) = cache(info.volatile_cache);
    // Other devices do not reveal whether a cache could be enabled.
    device.is_absent = kind == DeviceKind::Simulated
        && info.volatile_cache == VolatileCache::None
        && !info.is_cache_switched_off;
    DeviceView {
        model: Some(info.name.clone()),
        size: Some(info.size.0),
        rotational: info.revolution.map(|_| true),
        state,
        device,
        protection: info.is_cache_protected.then(|| Protection {
            claim: "the cache survives a power cut, by the model of the drive".to_owned(),
            rank: ProtectionRank::Declared,
            until: None,
        }),
        findings: vec![no_kernel_view(name, info)],
        ..DeviceView::no_disk(name, transport, changeable_by, refusal(name, kind))
    }
}

/// Returns the view of a cache of plumb from its survey, without opening it, since it may be in use.
/// `is_protected` is true for the mode `protected`.
pub fn surveyed_cache(name: &str, survey: &Survey, is_protected: bool) -> DeviceView {
    let path = survey.paths.first();
    let layer =
        path.and_then(|path| path.layers.iter().find(|layer| layer.kind == LayerKind::WriteBackCache));
    let volatile_cache = match layer.map(|layer| layer.cache) {
        Some(Cache::Volatile) => VolatileCache::Enabled,
        Some(Cache::None | Cache::Protected) => VolatileCache::None,
        Some(Cache::Unknown) | None => VolatileCache::Unknown,
    };
    let plain = DeviceInfo::plain("write-back cache of plumb", Bytes(0), Bytes(512));
    let view = foreign(name, &DeviceInfo { volatile_cache, ..plain }, DeviceKind::Cache);
    let state = if is_protected { FoundState::Protected } else { view.state };
    DeviceView {
        size: None,
        state,
        findings: path.map(|path| path.findings.clone()).unwrap_or_default(),
        ..view
    }
}

fn cache(volatile: VolatileCache) -> (FoundState, DeviceSide) {
    let (state, wce, because) = match volatile {
        VolatileCache::None => (FoundState::Off, Some(false), None),
        VolatileCache::Enabled => (FoundState::On, Some(true), None),
        VolatileCache::Unknown => (FoundState::Unknown, None, Some("the device does not say".to_owned())),
    };
    let mechanism = "device-info".to_owned();
    (state, DeviceSide { wce, wce_unknown_because: because, mechanism, ..DeviceSide::default() })
}

/// End of a sentence about a device that accepts flushes.
const PLUMBS_FLUSHES: &str = ", and plumb's own flushes go straight to the device";

fn no_kernel_view(name: &str, info: &DeviceInfo) -> Finding {
    let (fua, flushes) = match (info.fua_native, info.volatile_cache) {
        (true, VolatileCache::Unknown) => ("FUA is native, no flush is offered", ""),
        (false, VolatileCache::Unknown) => ("neither flush nor FUA is offered", ""),
        (true, _) => ("FUA is native", PLUMBS_FLUSHES),
        (false, _) => ("FUA is a write and a flush", PLUMBS_FLUSHES),
    };
    Finding {
        id: "no-kernel-view".to_owned(),
        severity: Severity::Info,
        sentence: format!(
            "The kernel does not know {name}: it has no view of the cache that could be wrong{flushes}."
        ),
        evidence: vec![format!("the device says of itself: {}; {fua}", info.cache_words())],
        remedy: String::new(),
    }
}

fn refusal(name: &str, kind: DeviceKind) -> Refusal {
    let (reason, remedy) = match kind {
        DeviceKind::Simulated => (
            format!("{name} is a simulated drive in this process, and is gone with it"),
            "name it as it is to be: sim:MODEL?wce=on, or wce=off; one that is served is switched by `plumb drive set NAME --wce off`"
                .to_owned(),
        ),
        DeviceKind::Nbd => (
            format!("only its server knows the storage behind {name}"),
            "change the disk where the server runs".to_owned(),
        ),
        DeviceKind::Cache => (
            format!("{name} is a write-back cache: what is durable when is its mode, not a drive's write cache"),
            "change the mode (`plumb cache mode`), or the disks of its log and beneath it".to_owned(),
        ),
    };
    Refusal { reason, remedy }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::KernelSide;

    #[test]
    fn what_the_device_says_is_its_state_and_nothing_is_made_up() {
        let plain = DeviceInfo::plain("Model X", Bytes::mib(1), Bytes(512));
        for (cache, state, wce) in [
            (VolatileCache::None, FoundState::Off, Some(false)),
            (VolatileCache::Enabled, FoundState::On, Some(true)),
            (VolatileCache::Unknown, FoundState::Unknown, None),
        ] {
            let info = DeviceInfo { volatile_cache: cache, fua_native: true, ..plain.clone() };
            for (kind, transport) in [(DeviceKind::Simulated, "sim"), (DeviceKind::Nbd, "nbd")] {
                let view = foreign("x", &info, kind);
                assert_eq!((view.state, view.device.wce, view.transport.as_str()), (state, wce, transport));
                assert_eq!(view.device.wce.is_none(), view.device.wce_unknown_because.is_some());
                assert_eq!((view.kernel, view.size), (KernelSide::default(), Some(1 << 20)));
                assert!(view.findings[0].evidence[0].contains("FUA is native"));
                let takes_flushes = view.findings[0].sentence.contains("flushes go straight");
                assert_eq!(takes_flushes, cache != VolatileCache::Unknown);
                assert!(!view.refusal.unwrap().remedy.is_empty());
                assert_eq!(view.protection, None);
                let is_absent = wce == Some(false) && kind == DeviceKind::Simulated;
                assert_eq!(view.device.is_absent, is_absent);
                let switched_off = DeviceInfo { is_cache_switched_off: true, ..info.clone() };
                assert!(!foreign("x", &switched_off, kind).device.is_absent);
            }
        }
        let info = DeviceInfo { volatile_cache: VolatileCache::Unknown, ..plain.clone() };
        let view = foreign("nbd+unix:///x?socket=/s", &info, DeviceKind::Nbd);
        assert!(
            view.findings[0].evidence[0].contains("neither flush nor FUA is offered"),
            "{:?}",
            view.findings
        );
        assert!(!view.refusal.unwrap().reason.contains("another machine"), "its socket is here");
        let info = DeviceInfo { volatile_cache: VolatileCache::Enabled, is_cache_protected: true, ..plain };
        let view = foreign("x", &info, DeviceKind::Simulated);
        assert!(view.findings[0].evidence[0].contains("a protected cache is on"), "{:?}", view.findings);
        assert_eq!(view.protection.unwrap().rank, ProtectionRank::Declared);
    }
}
