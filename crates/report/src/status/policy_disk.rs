//! Section of `plumb policy show` on one disk, with everything known about it.

use plumb_block::Bytes;
use plumb_policy::state::FoundState;
use plumb_policy::view::{DeviceSide, DeviceView, Holder};
use plumb_text::printable;

use crate::outline::{Item, Page, Row};
use crate::wording;

/// Adds everything known about a disk.
pub(super) fn disk(page: &mut Page, view: &DeviceView) {
    let mut rows = Vec::new();
    let mut line = |what: &str, text: &str| rows.push(Row::new(what, text));
    line("identity", view.identity.as_deref().unwrap_or("none: it could not be known again"));
    let model = model(view);
    if !model.is_empty() {
        let serial = view.serial.as_deref().map_or_else(String::new, |serial| format!(", serial {serial}"));
        line("model", &format!("{model}{serial}"));
    }
    line("reached", &reached(view));
    line("device", &device(view));
    if view.state == FoundState::Unknown {
        line(
            "not known",
            &format!("whether an acknowledged write may be in a volatile cache; {}", told_by(view)),
        );
    }
    line("kernel", &kernel(view));
    line("protection", &protection(view));
    for counter in &view.health {
        line("health", &format!("{} = {} ({})", counter.name, counter.value, counter.source));
    }
    for (number, holder) in view.holders.iter().enumerate() {
        line(if number == 0 { "on it" } else { "" }, &on_it(holder));
    }
    if view.holders.is_empty() {
        line("on it", "nothing");
    }
    view.redundancy_groups.iter().for_each(|group| line("member of", group));
    line("changed by", &view.changeable_by);
    if let Some(refusal) = &view.refusal {
        line("refused", &refusal.reason);
        line("  instead", &refusal.remedy);
    }
    let none = if view.device.is_absent { ", it has no volatile write cache" } else { "" };
    page.add(format!("{}: {}{none}", printable(&view.name), view.state.word()), vec![Item::Rows(rows)]);
    page.add("", view.findings.iter().map(Item::finding).collect());
}

/// Returns vendor and model as one text, without a vendor invented by a translation layer.
pub(super) fn model(view: &DeviceView) -> String {
    let vendor = view.vendor.as_deref().filter(|vendor| *vendor != "ATA" && *vendor != "NVMe");
    let both: Vec<&str> = vendor.into_iter().chain(view.model.as_deref()).map(str::trim).collect();
    printable(&both.join(" "))
}

pub(super) const fn on_off(value: Option<bool>) -> &'static str {
    plumb_policy::state::on_off(value, "?")
}

/// Returns the word for the write cache of a device.
pub(super) const fn write_cache(device: &DeviceSide) -> &'static str {
    match device.is_absent {
        true => wording::write_cache(None),
        false => on_off(device.wce),
    }
}

pub(super) const fn yes_no(value: Option<bool>) -> &'static str {
    match value {
        Some(true) => "yes",
        Some(false) => "no",
        None => "?",
    }
}

fn reached(view: &DeviceView) -> String {
    let size = view.size.map_or_else(String::new, |size| format!(", {}", Bytes(size)));
    let port = if view.port.is_empty() { String::new() } else { format!(", {}", view.port) };
    let turns = match view.rotational {
        Some(true) => ", rotating",
        Some(false) => ", not rotating",
        None => "",
    };
    format!("{}{port}{size}{turns}", view.transport)
}

fn device(view: &DeviceView) -> String {
    let device = &view.device;
    if device.wce.is_none() {
        let why = device.wce_unknown_because.as_deref().unwrap_or("it does not say");
        return format!("write cache not known: {why}");
    }
    let sct = device.sct.as_deref().map_or_else(String::new, |sct| format!(", SCT {sct}"));
    format!(
        "write cache {} (changeable {}, default {}, saved {}, can be saved {}{sct}), read by {}",
        write_cache(device),
        said(yes_no(device.changeable)),
        said(on_off(device.default)),
        said(on_off(device.saved)),
        said(yes_no(device.saveable)),
        device.mechanism
    )
}

/// Returns how to determine an unknown state.
fn told_by(view: &DeviceView) -> &'static str {
    match &*view.transport {
        "nbd" => "`plumb policy show` of the disk that is exported, on the machine of its server, shows it",
        "cache" => "`plumb survey` shows the devices of its log, as far as they can be seen",
        _ => {
            "root can ask most drives; where a drive does not say, power cuts with a witness do (`plumb prove witness`)"
        }
    }
}

/// Returns the reported value within a sentence.
fn said(word: &'static str) -> &'static str {
    if word == "?" { "not said" } else { word }
}

fn kernel(view: &DeviceView) -> String {
    let kernel = &view.kernel;
    let Some(write_cache) = &kernel.write_cache else { return "it has no queue of its own".to_owned() };
    let sent = if write_cache == "write back" { "flushes are sent" } else { "flushes are NOT sent" };
    let cache_type =
        kernel.cache_type.as_deref().map_or_else(String::new, |text| format!(", cache_type {text}"));
    format!("{write_cache}: {sent}{cache_type}, FUA {}", said(yes_no(kernel.fua)))
}

fn protection(view: &DeviceView) -> String {
    let Some(protection) = &view.protection else {
        return "no claim says that its cache survives a power cut".to_owned();
    };
    let until = protection.until.as_deref().map_or_else(String::new, |until| format!(", until {until}"));
    let (rank, number) = (protection.rank.word(), protection.rank.number());
    format!("{rank} (rung {number} of 5, 1 is best): {}{until}", protection.claim)
}

fn on_it(holder: &Holder) -> String {
    let believes = holder.write_cache.as_deref().map_or_else(String::new, |text| format!(", {text}"));
    format!("{} ({}{believes})", holder.name, holder.kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_state_says_what_would_tell() {
        let shown = |state, transport: &str| {
            let mut page = Page::default();
            disk(&mut page, &DeviceView { state, transport: transport.to_owned(), ..DeviceView::default() });
            format!("{page:?}")
        };
        let unknown = "whether an acknowledged write may be in a volatile cache; ";
        for (transport, how) in [
            ("nbd", "`plumb policy show` of the disk that is exported"),
            ("cache", "`plumb survey` shows"),
            ("virtio", "root can ask most drives"),
        ] {
            let text = shown(FoundState::Unknown, transport);
            assert!(text.contains(&format!("{unknown}{how}")), "{text}");
            assert!(!shown(FoundState::On, transport).contains(unknown));
        }
    }
}
