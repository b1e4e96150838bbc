//! Reasons why a disk cannot be changed, with advice. They are in order of importance, and the first that
//! applies is reported.

use super::drive::Drive;
use crate::state::State;
use crate::view::{DeviceView, ProtectionRank, Refusal};
use crate::wire::sct::WriteCache;
use plumb_linux::inventory::{Block, BlockKind, Inventory};
use plumb_text::shell_word;

/// Facts for the decision.
pub(super) struct Case<'a> {
    pub(super) tree: &'a dyn plumb_linux::tree::Tree,
    pub(super) inventory: &'a Inventory,
    pub(super) block: &'a Block,
    pub(super) drive: &'a Drive,
    pub(super) view: &'a DeviceView,
    /// Other disks with the same identity.
    pub(super) twins: &'a [String],
    /// Driver of the SCSI host.
    pub(super) driver: Option<&'a str>,
}

fn refuse(reason: impl Into<String>, remedy: impl Into<String>) -> Option<Refusal> {
    Some(Refusal::new(reason, remedy))
}

/// Returns the reason why plumb cannot change the disk; `None` if it can.
pub(super) fn find(case: &Case<'_>) -> Option<Refusal> {
    no_disk(case)
        .or_else(|| controller(case))
        .or_else(|| unreadable(case))
        .or_else(|| unchangeable(case))
        .or_else(|| shared(case))
        .or_else(|| unidentified(case))
}

/// Refuses a device without a write cache of its own.
fn no_disk(case: &Case<'_>) -> Option<Refusal> {
    let name = &case.block.name;
    let below: Vec<&str> = case.block.below.iter().map(String::as_str).collect();
    let below = if below.is_empty() { "the disk below".to_owned() } else { below.join(", ") };
    match case.block.kind {
        BlockKind::Disk => None,
        BlockKind::Partition => refuse(
            format!("{name} is a part of {below}, which has the cache"),
            format!("name the disk: {below}"),
        ),
        BlockKind::DeviceMapper | BlockKind::Md | BlockKind::Bcache => refuse(
            format!("{name} has no write cache of its own: the devices below it have"),
            format!("name what it stands on: {below}"),
        ),
        BlockKind::Loop => refuse(
            format!("{name} is a loop device on a file; {}", cache_of_the_file(case)),
            below_the_file(case),
        ),
        BlockKind::Memory => {
            refuse(format!("{name} is memory: nothing of it survives a power cut"), "nothing can be changed")
        }
        BlockKind::Remote => refuse(
            format!("only its server knows the storage behind {name}"),
            "change the disk where the server runs",
        ),
        BlockKind::Removable => refuse(format!("{name} takes removable media"), "nothing can be changed"),
    }
}

/// Returns the cache that holds acknowledged data of a loop device.
fn cache_of_the_file(case: &Case<'_>) -> &'static str {
    let is_direct = case.tree.text(&format!("{}/loop/dio", case.block.sysfs)).is_ok_and(|text| text == "1");
    if is_direct {
        "with direct I/O its writes go past the page cache, to the cache of the disk below"
    } else {
        "its cache is the page cache of this machine"
    }
}

/// Returns the disks that hold the file of a loop device.
fn below_the_file(case: &Case<'_>) -> String {
    let file = case.block.backing_file();
    let disks: Vec<&str> =
        file.map(|file| case.inventory.disks_under_path(file)).into_iter().flatten().collect();
    match disks.as_slice() {
        [] => "name the disk that the file's file system is on".to_owned(),
        disks => format!("name the disk that the file's file system is on: {}", disks.join(", ")),
    }
}

/// Returns the manufacturer's program for an adapter.
pub(super) fn tool_of(driver: Option<&str>) -> &'static str {
    match driver {
        Some("megaraid_sas" | "megaraid" | "mpt3sas" | "mpt2sas" | "mpi3mr") => "storcli or perccli",
        Some("hpsa" | "smartpqi") => "ssacli",
        Some("aacraid") => "arcconf",
        _ => "the program of its maker",
    }
}

fn controller(case: &Case<'_>) -> Option<Refusal> {
    if case.view.transport != "raid" {
        return None;
    }
    let name = &case.block.name;
    refuse(
        format!(
            "{name} is a logical disk of a RAID controller: its cache is the controller's, and those of its members are hidden"
        ),
        format!("set the policy of the volume and of its disks with {}", tool_of(case.driver)),
    )
}

/// Returns the reason why a drive that answers EPERM was not queried. For root it explains that root is not
/// sufficient here.
pub(super) const fn denied(is_root: bool) -> &'static str {
    if is_root {
        "the kernel denies this to the process although it runs as root (EPERM)"
    } else {
        "only root may ask the drive"
    }
}

/// Returns the remedy for missing permissions.
const fn more_rights(is_root: bool) -> &'static str {
    if is_root {
        "run plumb outside of the container, or in one that has CAP_SYS_RAWIO and CAP_SYS_ADMIN"
    } else {
        "run plumb as root"
    }
}

fn unreadable(case: &Case<'_>) -> Option<Refusal> {
    let (name, drive, view) = (&case.block.name, case.drive, case.view);
    if drive.denied {
        let is_root = rustix::process::geteuid().is_root();
        return refuse(
            format!("{name} cannot be asked about its cache: {}", denied(is_root)),
            more_rights(is_root),
        );
    }
    if drive.no_caching_page {
        let remedy = match view.transport.as_str() {
            "usb" => "attach the disk to another bridge, or directly: this one does not pass the page on",
            _ => {
                "nothing can be changed; if the maker says that there is a cache, `echo 'temporary write back'` into cache_type makes the kernel send flushes until the next boot"
            }
        };
        return refuse(
            format!("{name} has no caching page: whether it has a write cache is unknown"),
            remedy,
        );
    }
    if view.device.wce.is_none() {
        let because = view.device.wce_unknown_because.as_deref().unwrap_or("it does not say");
        return refuse(
            format!("whether the write cache of {name} is on cannot be read back ({because})"),
            "plumb does not change what it cannot read back; look for the device in the kernel log",
        );
    }
    None
}

fn unchangeable(case: &Case<'_>) -> Option<Refusal> {
    let (name, drive, device) = (&case.block.name, case.drive, &case.view.device);
    if drive.write_protected {
        return refuse(
            format!(
                "{name} is write-protected: a change through the kernel would switch its cache off (trap H8)"
            ),
            "take the write protection away, `echo 1 > /sys/block/DISK/device/rescan`, and plan again",
        );
    }
    let forced = [WriteCache::ForcedOn, WriteCache::ForcedOff].map(WriteCache::word);
    if device.sct.as_deref().is_some_and(|sct| forced.contains(&sct)) {
        return refuse(
            format!(
                "the write cache of {name} is {} by SCT Feature Control: the usual command is accepted and ignored",
                device.sct.as_deref().unwrap_or_default()
            ),
            "return control to the usual command first: `smartctl -s wcache-sct,ata,p /dev/DISK`",
        );
    }
    if device.changeable == Some(false) {
        return match case.view.transport.as_str() {
            "virtio" => refuse(
                format!("the hypervisor does not let this guest switch the cache of {name}"),
                "change the disk's cache mode on the host, or give it config-wce=on",
            ),
            "nvme" | "nvme-fabrics" if drive.declared.is_some() => refuse(
                format!("{name} has no volatile write cache that could be switched"),
                "nothing needs to be changed",
            ),
            _ => refuse(
                format!("{name} does not let its write cache be changed"),
                "ask the manufacturer for a firmware that does, or keep the setting",
            ),
        };
    }
    None
}

/// Refuses a disk that is one path of the multipath device `above`.
fn multipath_member(name: &str, above: &Block) -> Option<Refusal> {
    let others: Vec<&str> = above.below.iter().map(String::as_str).filter(|other| *other != name).collect();
    let (paths, rescan) = match others.as_slice() {
        [] => ("there is no other path now".to_owned(), "rescan every path that comes back".to_owned()),
        others => {
            let rescan = |other: &&str| {
                let file = shell_word(&format!("/sys/block/{other}/device/rescan"));
                format!("`echo 1 > {file}`")
            };
            let rescan: Vec<String> = others.iter().map(rescan).collect();
            (format!("the other paths are {}", others.join(", ")), rescan.join(", "))
        }
    };
    refuse(
        format!(
            "{name} is one path of the multipath device {}: the kernel's view of the other paths would be stale ({paths})",
            above.name
        ),
        format!(
            "flush the map (`multipath -f {}`), change the disk over {name} alone, let the kernel read every other \
             path again ({rescan}), and set the map up again (`multipath -r`)",
            shell_word(&above.name)
        ),
    )
}

/// Refuses a disk that is shared with others.
fn shared(case: &Case<'_>) -> Option<Refusal> {
    let name = &case.block.name;
    for above in case.inventory.above(name) {
        let multipath =
            case.tree.text(&format!("{}/dm/uuid", above.sysfs)).is_ok_and(|uuid| uuid.starts_with("mpath-"));
        if multipath {
            return multipath_member(name, above);
        }
        let action = case.tree.text(&format!("{}/md/sync_action", above.sysfs)).unwrap_or_default();
        if !matches!(action.as_str(), "" | "idle" | "frozen") {
            return refuse(
                format!("the array {} on {name} is busy: {action}", above.name),
                format!("wait until /sys/block/{}/md/sync_action says idle, and plan again", above.name),
            );
        }
    }
    let controllers = match case.view.transport.as_str() {
        "nvme" => plumb_path::nvme_controllers(case.tree, &case.block.sysfs),
        _ => Vec::new(),
    };
    if controllers.len() > 1 {
        let names: Vec<&str> = controllers.iter().filter_map(|dir| dir.rsplit('/').next()).collect();
        return refuse(
            format!(
                "{name} is reached over several controllers ({}), each with a setting of its own: a change over one of them would \
                 leave the others as they are",
                names.join(", ")
            ),
            format!(
                "change it over each of them: {}",
                names
                    .iter()
                    .map(|name| shell_word(&format!("/dev/{name}")))
                    .map(|node| format!("`nvme set-feature {node} -f 6 -V 0` (1 for on)"))
                    .collect::<Vec<_>>()
                    .join(", ")
            ),
        );
    }
    if let [twin, ..] = case.twins {
        return refuse(
            format!(
                "{name} and {twin} have the same identity: they are two paths to one disk, or it is not an identity"
            ),
            "set up multipath for two paths to one disk; give disks of a virtual machine a serial number each",
        );
    }
    if matches!(case.view.transport.as_str(), "fc" | "iscsi" | "nvme-fabrics") || case.drive.registrations > 1
    {
        return refuse(
            format!(
                "{name} may be shared: other hosts reach it over the same network, and their kernels would not learn of the change"
            ),
            "change the cache policy of the volume on the storage system",
        );
    }
    None
}

fn unidentified(case: &Case<'_>) -> Option<Refusal> {
    if case.view.identity.is_some() {
        return None;
    }
    refuse(
        format!("{} has neither a WWN nor a serial number by which it could be recognised", case.block.name),
        "give the disk a serial number (in a virtual machine: serial=), or change it by hand",
    )
}

/// Findings above a disk that mean that flushes do not reach it. A stale dm table is not included, since
/// enabling reloads it.
const DROPPING: [&str; 4] =
    ["barriers-off", "volatile-overlay", "h9-driver-swallows-flush", "driver-may-swallow-flush"];

/// Returns the reason why `view` cannot be brought into `state`: a general one, then one specific to the
/// state. `None` if it can be, or is already.
pub fn refusal_for(view: &DeviceView, state: State) -> Option<Refusal> {
    if let Some(refusal) = &view.refusal {
        return Some(refusal.clone());
    }
    let enough =
        view.protection.as_ref().is_some_and(|claim| claim.rank <= ProtectionRank::AdministratorsWord);
    if state == State::Protected && !enough {
        return refuse(
            format!("no claim says that the cache of {} survives a power cut", view.name),
            "record who says so and until when (`plumb policy claim`), or use the state `on`, in which flushes are sent",
        );
    }
    if view.state.is(state) || state == State::Off || view.device.wce == Some(true) {
        return None;
    }
    let dropping = view.findings.iter().find(|finding| DROPPING.contains(&finding.id.as_str()))?;
    refuse(
        format!(
            "with the cache of {} on, flushes would be lost on the way: {}",
            view.name, dropping.sentence
        ),
        dropping.remedy.clone(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_not_told_to_become_root() {
        assert!(more_rights(false).ends_with("as root") && denied(false).contains("only root"));
        assert!(!more_rights(true).contains("as root") && more_rights(true).contains("CAP_SYS_RAWIO"));
        assert!(denied(true).contains("EPERM") && !denied(true).contains("only root"));
    }
}
