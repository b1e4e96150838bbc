//! One disk in full.

use plumb_block::Bytes;
use plumb_policy::view::{DeviceView, Holder};
use plumb_report::Style;
use plumb_report::printable::printable;

use super::layout::{Ink, hang, model};
use super::{table, words};

/// Everything that is known of a disk.
pub(in super::super) fn of(view: &DeviceView, style: Style) -> String {
    let mut out = format!("{}: {}\n", style.ink(Ink::Bold, &printable(&view.name)), view.state.word());
    let mut line = |what: &str, text: &str| out.push_str(&hang(&format!("  {what:<13}"), text, style));
    line("identity", view.identity.as_deref().unwrap_or("none: it could not be known again"));
    let model = model(view);
    if !model.is_empty() {
        let serial = view.serial.as_deref().map_or_else(String::new, |serial| format!(", serial {serial}"));
        line("model", &format!("{model}{serial}"));
    }
    line("reached", &reached(view));
    line("device", &device(view));
    line("kernel", &kernel(view));
    line("protection", &protection(view));
    for counter in &view.health {
        line("health", &format!("{} = {} ({})", counter.name, counter.value, counter.source));
    }
    let mut lead = "on it";
    for holder in &view.holders {
        line(lead, &on_it(holder));
        lead = "";
    }
    if view.holders.is_empty() {
        line("on it", "nothing");
    }
    for group in &view.redundancy_groups {
        line("member of", group);
    }
    line("changed by", &view.changeable_by);
    if let Some(refusal) = &view.refusal {
        line("refused", &refusal.reason);
        line("  instead", &refusal.remedy);
    }
    for finding in &view.findings {
        out.push('\n');
        out.push_str(&table::finding(finding, None, style));
        for evidence in &finding.evidence {
            out.push_str(&hang("         - ", evidence, style));
        }
    }
    out
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
    let Some(wce) = device.wce else {
        let why = device.wce_unknown_because.as_deref().unwrap_or("it does not say");
        return format!("write cache not known: {why}");
    };
    let sct = device.sct.as_deref().map_or_else(String::new, |sct| format!(", SCT {sct}"));
    format!(
        "write cache {} (changeable {}, default {}, saved {}, can be saved {}{sct}), read by {}",
        words::on_off(Some(wce)),
        said(words::yes_no(device.changeable)),
        said(words::on_off(device.default)),
        said(words::on_off(device.saved)),
        said(words::yes_no(device.saveable)),
        device.mechanism
    )
}

/// In a sentence.
fn said(word: &'static str) -> &'static str {
    if word == "?" { "not said" } else { word }
}

fn kernel(view: &DeviceView) -> String {
    let kernel = &view.kernel;
    let Some(write_cache) = &kernel.write_cache else { return "it has no queue of its own".to_owned() };
    let sent = if write_cache == "write back" { "flushes are sent" } else { "flushes are NOT sent" };
    let cache_type =
        kernel.cache_type.as_deref().map_or_else(String::new, |text| format!(", cache_type {text}"));
    format!("{write_cache}: {sent}{cache_type}, FUA {}", said(words::yes_no(kernel.fua)))
}

fn protection(view: &DeviceView) -> String {
    let Some(protection) = &view.protection else {
        return "nobody claims that its cache survives a power cut".to_owned();
    };
    let until = protection.until.as_deref().map_or_else(String::new, |until| format!(", until {until}"));
    let (rank, rung) = (protection.rank.word(), protection.rank.rung());
    format!("{rank} (rung {rung} of 5, 1 is best): {}{until}", protection.claim)
}

fn on_it(holder: &Holder) -> String {
    let believes = holder.write_cache.as_deref().map_or_else(String::new, |text| format!(", {text}"));
    format!("{} ({}{believes})", holder.name, holder.kind)
}
