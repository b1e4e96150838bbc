//! Kernel modules: dependencies and order of insertion, according to kmod.
//!
//! Debian's kernel package has no dependency lists (its install script runs depmod), so they are generated in
//! the cache. Modules are shipped as `.ko` (6.1) or `.ko.xz` (6.12), and the guest's insmod needs them
//! unpacked, so each module is unpacked once, into the cache.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::kernel::{Kernel, write_aside};
use crate::{packages, process};

/// Modules of one kernel package.
#[derive(Debug)]
pub(crate) struct Modules {
    /// Root directory of the modules, and the kernel's release.
    root: PathBuf,
    release: String,
    unpacked_dir: PathBuf,
}

impl Modules {
    /// Opens the modules of `kernel`. Unpacked ones are stored in `unpacked_dir`.
    ///
    /// # Errors
    /// If their dependencies cannot be listed.
    pub(crate) fn open(kernel: &Kernel, unpacked_dir: &Path) -> Result<Self> {
        let Kernel { root, release, .. } = kernel;
        if !root.join("lib/modules").join(release).join("modules.dep").exists() {
            process::run(kmod("depmod")?.arg("--basedir").arg(root).arg(release))?;
        }
        std::fs::create_dir_all(unpacked_dir)
            .with_context(|| format!("creating {}", unpacked_dir.display()))?;
        Ok(Self { root: root.clone(), release: release.clone(), unpacked_dir: unpacked_dir.to_owned() })
    }

    /// Returns the files to insert for all of `wanted`, in order and each once. Built-in modules need no
    /// file.
    ///
    /// # Errors
    /// If the kernel has no such module, or it cannot be unpacked.
    pub(crate) fn files_for(&self, wanted: &[&str]) -> Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        for name in wanted {
            let mut command = kmod("modprobe")?;
            command.arg("--dirname").arg(&self.root).args(["--set-version", &self.release]);
            // The modprobe configuration of this machine does not apply to the guest.
            command.args(["--config", "/dev/null", "--show-depends", name]);
            for packed in inserted(&process::text(&mut command)?) {
                let file = self.unpacked(packed)?;
                if !files.contains(&file) {
                    files.push(file);
                }
            }
        }
        Ok(files)
    }

    fn unpacked(&self, packed: &Path) -> Result<PathBuf> {
        let name = module_name(packed).with_context(|| format!("{} has no name", packed.display()))?;
        let file = self.unpacked_dir.join(format!("{name}.ko"));
        if packed.extension().is_some_and(|extension| extension == "ko") {
            return Ok(packed.to_owned());
        }
        if !file.exists() {
            unpack(packed, &file)?;
        }
        Ok(file)
    }
}

/// Returns a program of kmod, which is often outside a user's path.
fn kmod(program: &str) -> Result<Command> {
    Ok(Command::new(packages::find(program).with_context(|| format!("{program} has gone"))?))
}

/// Returns the files in modprobe's dry run: `insmod /path/to/module.ko parameters`, or `builtin name`.
fn inserted(said: &str) -> impl Iterator<Item = &Path> {
    said.lines().filter_map(|line| line.strip_prefix("insmod ")?.split(' ').next().map(Path::new))
}

/// Converts `…/dm-mod.ko.xz` to dm_mod: the kernel spells module names with underscores.
pub(crate) fn module_name(path: &Path) -> Option<String> {
    Some(path.file_name()?.to_str()?.split_once(".ko")?.0.replace('-', "_"))
}

fn unpack(packed: &Path, file: &Path) -> Result<()> {
    let output = process::captured(Command::new("xz").arg("-dc").arg(packed), &[0])?;
    write_aside(&output.stdout, file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_built_in_needs_no_file() {
        let said = "builtin libcrc32c\ninsmod /k/dm-mod.ko.xz \ninsmod /k/usb_storage.ko delay_use=0\n";
        let names: Vec<_> = inserted(said).map(module_name).collect();
        assert_eq!(names, [Some("dm_mod".to_owned()), Some("usb_storage".to_owned())]);
        assert_eq!(module_name(Path::new("x/modules.order")), None);
    }
}
