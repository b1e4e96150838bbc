//! Resolution of a user's name: a kernel name, a node of /dev or a link to one, or a path on a file system.

use plumb_linux::tree::{FileKind, Tree};
use plumb_text::shell_word;

use crate::view::{DeviceSide, DeviceView, Refusal};
use plumb_linux::inventory::{Block, Inventory};

/// Error of a name that leads to no device.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{target}` is not a block device of this machine: expected a name such as sda, a node such as /dev/disk/by-id/..., or --all"
)]
pub struct UnknownDevice {
    /// Name that the user gave.
    pub target: String,
}

/// Object that a name refers to.
pub(super) enum NamedObject<'a> {
    /// A block device.
    Block(&'a Block),
    /// A path on a file system, as a view with state `none`.
    Path(Box<DeviceView>),
}

/// Resolves `target`.
///
/// # Errors
/// [`UnknownDevice`].
pub(super) fn resolve<'a>(
    tree: &dyn Tree,
    inventory: &'a Inventory,
    target: &str,
) -> Result<NamedObject<'a>, UnknownDevice> {
    let plain = target.strip_prefix("/dev/").unwrap_or(target).replace('/', "!");
    if let Some(block) = inventory.get(&plain) {
        return Ok(NamedObject::Block(block));
    }
    let unknown = || UnknownDevice { target: target.to_owned() };
    let path = tree.canonical(target).map_err(|_| unknown())?;
    let stat = tree.stat(&path).ok();
    if let Some(number) = stat.filter(|stat| stat.kind == FileKind::Block).and_then(|stat| stat.node) {
        return inventory.by_number(number).map(NamedObject::Block).ok_or_else(unknown);
    }
    if let Some(block) = path.strip_prefix("/dev/").and_then(|name| inventory.get(&name.replace('/', "!"))) {
        return Ok(NamedObject::Block(block));
    }
    if path.starts_with("/dev/") {
        return Err(unknown());
    }
    Ok(NamedObject::Path(Box::new(on_file_system(inventory, target, &path))))
}

fn on_file_system(inventory: &Inventory, target: &str, path: &str) -> DeviceView {
    let mount = inventory.mount_of(path);
    let kind = mount.map_or("path", |mount| mount.kind.as_str());
    let mut disks: Vec<&str> = inventory.disks_under_path(path).into_iter().collect();
    if disks.is_empty() {
        // An attached cache of plumb: its view names the devices below.
        let device = mount.and_then(|mount| inventory.by_number(mount.device));
        disks.extend(device.map(|device| device.name.as_str()));
    }
    let remedy = match disks.as_slice() {
        [] => {
            "change the disks on the machine that has them; `plumb survey` shows what can be seen from here"
                .to_owned()
        }
        disks => {
            let word = shell_word(target);
            format!("name what it is on: {}; `plumb survey {word}` shows the way to it", disks.join(", "))
        }
    };
    let refusal = Refusal::new(format!("{target} is a path on {kind}, not a disk"), remedy);
    DeviceView {
        device: DeviceSide {
            wce_unknown_because: Some("a path has no write cache of its own".to_owned()),
            mechanism: "none".to_owned(),
            ..DeviceSide::default()
        },
        ..DeviceView::no_disk(target, kind, "nobody: a path is not a disk", refusal)
    }
}
