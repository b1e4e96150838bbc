//! Gateway to the running machine.

use std::fs::OpenOptions;
use std::io::Write;

use plumb_block::{Clock as _, Errno, Nanos, RealClock};
use plumb_linux::command::Transfer;
use plumb_linux::dm_reload;
use plumb_linux::probe::{LiveProbe, Probe};
use plumb_linux::tree::{LiveTree, Tree};

use super::descriptor::{Descriptor, os};
use super::{Change, Disk, Gateway, GatewayError, Query};

/// The running kernel and its drives.
#[derive(Debug, Default)]
pub struct LiveGateway {
    tree: LiveTree,
    probe: LiveProbe,
    clock: RealClock,
}

impl LiveGateway {
    /// Creates a gateway to this machine.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Gateway for LiveGateway {
    fn tree(&self) -> &dyn Tree {
        &self.tree
    }

    fn probe(&self) -> &dyn Probe {
        &self.probe
    }

    fn ask(&self, disk: &Disk, query: &Query) -> Result<Vec<u8>, GatewayError> {
        let device = Descriptor::open(disk, false)?;
        match query {
            Query::Scsi { cdb, length } => {
                device.scsi("SCSI command", cdb, Transfer::FromDevice(*length)).map(|reply| reply.bytes)
            }
            Query::ScsiSense { cdb, data } => {
                device.scsi("SCSI command", cdb, transfer(data)).map(|reply| reply.sense)
            }
            Query::NvmeAdmin { command, length } => device.nvme(*command, *length),
        }
    }

    fn carry_out(&self, disk: &Disk, change: &Change) -> Result<(), GatewayError> {
        let writable = match change {
            Change::Scsi { .. } | Change::NvmeAdmin(_) => !rustix::process::geteuid().is_root(),
            _ => false,
        };
        let device = Descriptor::open(disk, writable)?;
        device.check(&self.tree, disk)?;
        match change {
            Change::Scsi { cdb, data } => device.scsi("SCSI command", cdb, transfer(data)).map(|_| ()),
            Change::NvmeAdmin(asked) => device.nvme(*asked, 0).map(|_| ()),
            Change::Attribute { path, text } => write_attribute(disk, path, text),
            Change::ClearOverride { path } => match write_attribute(disk, path, "no override") {
                Err(GatewayError::Os { errno: Errno::EINVAL, .. }) => Ok(()),
                other => other,
            },
            Change::Flush => device.flush(),
            Change::ReloadTable => dm_reload::reload_table(disk.number)
                .map_err(|error| os(&disk.name, format!("reload the table of {}", disk.name), &error)),
        }
    }

    fn now(&self) -> Nanos {
        self.clock.now()
    }

    fn sleep(&self, time: Nanos) {
        std::thread::sleep(time.into());
    }
}

fn transfer(data: &[u8]) -> Transfer<'_> {
    if data.is_empty() { Transfer::None } else { Transfer::ToDevice(data) }
}

/// Writes an attribute, which the kernel accepts only in a single write(2); a second part would be another
/// setting.
fn write_attribute(disk: &Disk, path: &str, text: &str) -> Result<(), GatewayError> {
    let step = || format!("write `{text}` to {path}");
    if !path.starts_with("/sys/") || path.contains("/../") {
        return Err(GatewayError::Os { step: step(), errno: Errno::EINVAL });
    }
    let mut file =
        OpenOptions::new().write(true).open(path).map_err(|error| os(&disk.name, step(), &error))?;
    let written = file.write(text.as_bytes()).map_err(|error| os(&disk.name, step(), &error))?;
    if written == text.len() { Ok(()) } else { Err(GatewayError::Os { step: step(), errno: Errno::EIO }) }
}

#[cfg(test)]
mod tests {
    use plumb_linux::tree::DeviceNumber;

    use super::*;

    #[test]
    fn what_is_not_the_disk_that_was_meant_is_not_changed() {
        let gateway = LiveGateway::new();
        let disk = |name: &str| Disk {
            name: name.to_owned(),
            number: DeviceNumber { major: 1, minor: 3 },
            identity: "serial.X".to_owned(),
        };
        let change = Change::Attribute { path: "/sys/none".to_owned(), text: "x".to_owned() };
        let gone = gateway.carry_out(&disk("none-such"), &change);
        assert_eq!(gone, Err(GatewayError::Gone { name: "none-such".to_owned() }));
        // A character device of the expected number is not a disk.
        assert!(matches!(gateway.carry_out(&disk("null"), &change), Err(GatewayError::OtherDisk { .. })));
    }

    #[test]
    fn only_attributes_below_sys_are_written() {
        let disk = Disk {
            name: "x".to_owned(),
            number: DeviceNumber { major: 1, minor: 3 },
            identity: String::new(),
        };
        for path in ["/tmp/x", "/sys/../tmp/x", "sys/x"] {
            assert!(matches!(
                write_attribute(&disk, path, "x"),
                Err(GatewayError::Os { errno: Errno::EINVAL, .. })
            ));
        }
    }
}
