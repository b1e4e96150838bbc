//! Requirements of the scenarios that change write caches with plumb: their functions, jq, and udev.
//!
//! Such a scenario is a program. The guest runs it, and it compares the reports of plumb with those of the
//! kernel, and both with the counters of the drives, which it requests from the host (`count`, see
//! `channel`). Each check is a note; a note that says FAIL fails the scenario.
//!
//! udev is Debian's own, with the rules that give disks their serial numbers, so that plumb's rules are read
//! by the program for which they are written. systemd is missing: a scenario runs the command of a unit as
//! written in the unit.

use anyhow::{Context, Result};

use super::cpio::Archive;
use super::libraries::add_program;
use crate::packages::{self, find};

/// Names in the guest, and the Debian packages that provide them.
pub(crate) const TOOLS: &str = "jq udevadm=udev";

/// Programs started by Debian's rules.
const HELPERS: [&str; 2] = ["ata_id", "scsi_id"];
/// Rules that give a disk its properties.
const RULES: [&str; 2] = ["60-block.rules", "60-persistent-storage.rules"];
/// Directory of both, here and in the guest.
const UDEV: &str = "usr/lib/udev";

/// Adds everything to the archive.
///
/// # Errors
/// If something cannot be read.
pub(crate) fn add(archive: &Archive) -> Result<()> {
    let mut libraries = std::collections::BTreeSet::new();
    for tool in packages::programs(TOOLS) {
        let program = find(tool.name).with_context(|| format!("{} has gone", tool.name))?;
        add_program(archive, &program, tool.name, &mut libraries)?;
    }
    archive.symlink("sbin/systemd-udevd", "udevadm")?;
    // The daemon starts its helpers from /lib/udev, which is the same place on a Debian with merged /usr.
    archive.symlink("lib/udev", &format!("/{UDEV}"))?;
    for name in HELPERS {
        let path = std::path::Path::new("/").join(UDEV).join(name);
        add_program(archive, &path, name, &mut libraries)?;
        archive.symlink(&format!("{UDEV}/{name}"), &format!("/sbin/{name}"))?;
    }
    for name in RULES {
        let path = std::path::Path::new("/").join(UDEV).join("rules.d").join(name);
        archive.copy(&format!("{UDEV}/rules.d/{name}"), &path)?;
    }
    archive.file("etc/passwd", "root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n")?;
    archive.file("etc/group", "root:x:0:\ndisk:x:6:\nnobody:x:65534:\n")?;
    archive.file("lab/policy.sh", include_str!("script/policy.sh"))?;
    let module = include_str!("../../../integrations/ansible/plugins/modules/policy_shell.sh");
    archive.file("lab/policy_shell.sh", module)
}
