//! Disks of Firecracker, Cloud Hypervisor and crosvm, by the documentation of their options.

use super::command_line::{Settings, values};
use super::disk::{Caching, GuestDisk};

/// Returns the disks in the file of `--config-file` (Firecracker, docs/api_requests/block-caching.md):
/// `cache_type` Unsafe, the default, offers the guest no flush; Writeback passes it on as fsync(2). Without a
/// file, disks were added through the API and are not seen.
pub(super) fn firecracker(words: &[String], file: &dyn Fn(&str) -> Option<String>) -> Vec<GuestDisk> {
    let Some(text) = values(words, &["--config-file"]).last().and_then(|path| file(path)) else {
        return Vec::new();
    };
    let config: serde_json::Value = serde_json::from_slice(text.as_bytes()).unwrap_or_default();
    let drives = config["drives"].as_array().map(Vec::as_slice).unwrap_or_default();
    let disk = |drive: &serde_json::Value| {
        let cache = drive["cache_type"].as_str().unwrap_or("Unsafe");
        let is_read = drive["is_read_only"].as_bool() == Some(true);
        let disk = GuestDisk {
            name: drive["drive_id"].as_str().unwrap_or("without a name").to_owned(),
            image: drive["path_on_host"].as_str()?.to_owned(),
            options: format!("cache_type={cache}"),
            caching: Caching { drops_flushes: cache != "Writeback", ..Caching::default() },
            ..GuestDisk::default()
        };
        (!is_read).then_some(disk)
    };
    drives.iter().filter_map(disk).collect()
}

/// Returns the name of a Firecracker machine: `--id`.
pub(super) fn firecracker_id(words: &[String]) -> Option<String> {
    values(words, &["--id"]).last().map(|id| (*id).to_owned())
}

/// Returns the disks of `--disk` (Cloud Hypervisor, docs/device_model.md): a flush of the guest is an
/// fsync(2) of the image, and `direct=on` opens it with O_DIRECT.
pub(super) fn cloud_hypervisor(words: &[String], _: &dyn Fn(&str) -> Option<String>) -> Vec<GuestDisk> {
    by_settings(&values(words, &["--disk"]), "direct")
}

/// Returns the disks of `--block` and its older names (crosvm book, Block): a flush of the guest is an
/// fsync(2) of the image, and `direct=true` opens it with O_DIRECT.
pub(super) fn crosvm(words: &[String], _: &dyn Fn(&str) -> Option<String>) -> Vec<GuestDisk> {
    by_settings(&values(words, &["--block", "-b", "--rwdisk", "--rwroot"]), "direct")
}

fn by_settings(typed: &[&str], direct: &str) -> Vec<GuestDisk> {
    let disk = |(number, typed): (usize, &&str)| {
        let settings = Settings::parse(typed, "path");
        let is_read = ["readonly", "ro"].iter().any(|name| settings.is_on(name) == Some(true));
        let is_direct = settings.is_on(direct) == Some(true);
        let disk = GuestDisk {
            name: settings.get("id").map_or_else(|| number.to_string(), str::to_owned),
            image: settings.get("path")?.to_owned(),
            serial: settings.get("serial").map(str::to_owned),
            options: format!("{direct}={}", if is_direct { "on" } else { "off" }),
            caching: Caching { is_direct, ..Caching::default() },
        };
        (!is_read).then_some(disk)
    };
    typed.iter().enumerate().filter_map(disk).collect()
}
