//! Disks on the command line of QEMU, also as written by libvirt (qemu(1): `-drive`, `-blockdev`, `-device`;
//! block.c, `bdrv_parse_cache_mode`; block/io.c, `bdrv_co_flush`).

use std::collections::BTreeMap;

use super::command_line::{Settings, values};
use super::disk::{Caching, GuestDisk};

/// Options whose value is only an image.
const IMAGES: [&str; 12] = [
    "-hda",
    "-hdb",
    "-hdc",
    "-hdd",
    "-sd",
    "-mtdblock",
    "--hda",
    "--hdb",
    "--hdc",
    "--hdd",
    "--sd",
    "--mtdblock",
];

/// Returns the name of the machine: `-name db1`, `-name guest=db1,...`.
pub(super) fn machine(words: &[String]) -> Option<String> {
    let name = *values(words, &["-name", "--name"]).last()?;
    Settings::parse(name, "guest").get("guest").map(str::to_owned)
}

/// Returns the disks that a guest may write to.
pub(super) fn disks(words: &[String], _: &dyn Fn(&str) -> Option<String>) -> Vec<GuestDisk> {
    if words.iter().any(|word| matches!(word.as_str(), "-snapshot" | "--snapshot")) {
        return Vec::new();
    }
    let devices: Vec<Settings> = values(words, &["-device", "--device"]).into_iter().map(device).collect();
    let mut disks: Vec<GuestDisk> = Vec::new();
    for (number, typed) in values(words, &["-drive", "--drive"]).into_iter().enumerate() {
        disks.extend(drive(typed, number, &devices));
    }
    disks.extend(blockdevs(words, &devices));
    for image in values(words, &IMAGES) {
        let name = image.rsplit('/').next().unwrap_or(image).to_owned();
        let options = "no cache mode: writeback".to_owned();
        disks.push(GuestDisk { name, image: image.to_owned(), options, ..GuestDisk::default() });
    }
    disks
}

fn device(typed: &str) -> Settings {
    Settings::from_json(typed).unwrap_or_else(|| Settings::parse(typed, "driver"))
}

/// Returns the guest's device for this drive.
fn device_of<'a>(devices: &'a [Settings], drive: &str) -> Option<&'a Settings> {
    devices.iter().find(|device| device.get("drive") == Some(drive))
}

/// Returns the disk of a `-drive`; `None` if it has no medium or is read-only.
fn drive(typed: &str, number: usize, devices: &[Settings]) -> Option<GuestDisk> {
    let settings = Settings::parse(typed, "file");
    let is_read = ["readonly", "read-only", "snapshot"].iter().any(|name| settings.is_on(name) == Some(true));
    if is_read || settings.get("media") == Some("cdrom") || settings.get("if") == Some("pflash") {
        return None;
    }
    let image = settings.get("file").or_else(|| Some(settings.filename()?.1))?;
    let id = settings.get("id").map_or_else(|| format!("drive {number}"), str::to_owned);
    let device = device_of(devices, &id);
    let mode = settings.get("cache").unwrap_or("writeback");
    let flag = |name: &str, modes: &[&str]| settings.is_on(name).unwrap_or_else(|| modes.contains(&mode));
    let has_cache = write_cache(device).or_else(|| settings.is_on("cache.writeback"));
    let caching = Caching {
        is_direct: flag("cache.direct", &["none", "off", "directsync"]),
        drops_flushes: flag("cache.no-flush", &["unsafe"]),
        flushes_writes: !has_cache.unwrap_or(!matches!(mode, "writethrough" | "directsync")),
    };
    let serial = settings.get("serial").or_else(|| device?.get("serial"));
    let shown = ["cache", "cache.direct", "cache.no-flush", "cache.writeback", "aio", "discard"];
    Some(GuestDisk {
        name: id,
        image: image.trim_start_matches("file:").to_owned(),
        serial: serial.map(str::to_owned),
        options: options(&settings, &shown, device),
        caching: sane(caching),
    })
}

/// Returns whether the device presents a write cache to the guest, if it is specified.
fn write_cache(device: Option<&Settings>) -> Option<bool> {
    device?
        .is_on("write-cache")
        .filter(|_| device.and_then(|device| device.get("write-cache")) != Some("auto"))
}

/// Normalises the caching: if flushes are dropped, flushes after each write are dropped, too.
fn sane(caching: Caching) -> Caching {
    Caching { flushes_writes: caching.flushes_writes && !caching.drops_flushes, ..caching }
}

/// Returns the disks of `-blockdev`: a chain of nodes, of which the lowest opens the image.
fn blockdevs(words: &[String], devices: &[Settings]) -> Vec<GuestDisk> {
    let nodes: BTreeMap<String, Settings> = values(words, &["-blockdev", "--blockdev"])
        .into_iter()
        .map(|typed| Settings::from_json(typed).unwrap_or_else(|| Settings::parse(typed, "driver")))
        .filter_map(|node| Some((node.get("node-name")?.to_owned(), node)))
        .collect();
    let mut disks = Vec::new();
    for device in devices {
        let Some((name, top)) = device.get("drive").and_then(|name| nodes.get_key_value(name)) else {
            continue;
        };
        let is_read = top.is_on("read-only") == Some(true);
        let mut lowest = top;
        // A chain cannot be longer than the number of nodes.
        for _ in 0..nodes.len() {
            match lowest.get("file").and_then(|name| nodes.get(name)) {
                Some(below) => lowest = below,
                None => break,
            }
        }
        if is_read {
            continue;
        }
        let elsewhere = format!("{}, no file of this host", lowest.get("driver").unwrap_or("unknown driver"));
        let (prefix, image) = lowest.filename().unwrap_or(("", &elsewhere));
        let flag = |name: &str| {
            lowest.is_on(&format!("{prefix}{name}")).or_else(|| lowest.is_on(name)) == Some(true)
        };
        let caching = Caching {
            is_direct: flag("cache.direct"),
            drops_flushes: flag("cache.no-flush"),
            flushes_writes: write_cache(Some(device)) == Some(false),
        };
        disks.push(GuestDisk {
            name: device.get("id").unwrap_or(name).to_owned(),
            image: image.to_owned(),
            serial: device.get("serial").map(str::to_owned),
            options: options(lowest, &["cache.direct", "cache.no-flush", "aio", "discard"], Some(device)),
            caching: sane(caching),
        });
    }
    disks
}

/// Returns the settings that determine the caching of the disk, as typed.
fn options(settings: &Settings, names: &[&str], device: Option<&Settings>) -> String {
    let own = names.iter().filter_map(|name| Some(format!("{name}={}", settings.get(name)?)));
    let shown = device.and_then(|device| device.get("write-cache"));
    let all: Vec<String> = own.chain(shown.map(|value| format!("write-cache={value}"))).collect();
    if all.is_empty() { "no cache mode: writeback".to_owned() } else { all.join(",") }
}
