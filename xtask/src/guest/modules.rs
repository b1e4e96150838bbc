//! Kernel modules: which are needed, and in which order they must be inserted.
//!
//! Debian's kernel package carries no modules.dep (its install script makes it), so the dependencies are read where
//! depmod reads them: in the `.modinfo` section of each module, as `depends=a,b` and `softdep=pre: a b`. Modules are
//! shipped as `.ko` (6.1) or `.ko.xz` (6.12) and the guest's insmod wants them unpacked, so a needed module is unpacked
//! once, into the cache.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::process;

/// The modules of one kernel package, by name, and those compiled into the kernel itself.
#[derive(Debug)]
pub(crate) struct Modules {
    packed: BTreeMap<String, PathBuf>,
    builtin: BTreeSet<String>,
    unpacked_dir: PathBuf,
}

impl Modules {
    /// Lists the modules under `directory` (`/lib/modules/RELEASE`); unpacked ones will be kept in `unpacked_dir`.
    ///
    /// # Errors
    /// When a directory cannot be read.
    pub(crate) fn open(directory: &Path, unpacked_dir: &Path) -> Result<Self> {
        let mut packed = BTreeMap::new();
        collect(&directory.join("kernel"), &mut packed)?;
        ensure!(!packed.is_empty(), "no kernel modules under {}", directory.display());
        let list = directory.join("modules.builtin");
        let list = std::fs::read_to_string(&list).with_context(|| format!("reading {}", list.display()))?;
        let builtin = list.lines().filter_map(|line| module_name(Path::new(line))).collect();
        std::fs::create_dir_all(unpacked_dir)
            .with_context(|| format!("creating {}", unpacked_dir.display()))?;
        Ok(Self { packed, builtin, unpacked_dir: unpacked_dir.to_owned() })
    }

    /// The files to insert, in order, so that all of `wanted` are there. What is built in needs no file.
    ///
    /// # Errors
    /// When the kernel has no such module, or it cannot be unpacked.
    pub(crate) fn files_for(&self, wanted: &[&str]) -> Result<Vec<PathBuf>> {
        let order = insertion_order(wanted, |name| self.needs(name))?;
        order.iter().filter_map(|name| self.unpacked(name).transpose()).collect()
    }

    /// Whether this kernel offers the module, as a file or built in.
    pub(crate) fn has(&self, name: &str) -> bool {
        let name = underscored(name);
        self.packed.contains_key(&name) || self.builtin.contains(&name)
    }

    fn needs(&self, name: &str) -> Result<Vec<String>> {
        let Some(file) = self.unpacked(name)? else { return Ok(Vec::new()) };
        let content = std::fs::read(&file).with_context(|| format!("reading {}", file.display()))?;
        let (hard, soft) = dependencies(&content);
        // A soft dependency may name an alias (an algorithm) or nothing at all: only files count.
        Ok(hard.into_iter().chain(soft.into_iter().filter(|name| self.packed.contains_key(name))).collect())
    }

    /// The unpacked file of a module; none when it is built in.
    fn unpacked(&self, name: &str) -> Result<Option<PathBuf>> {
        if self.builtin.contains(name) {
            return Ok(None);
        }
        let Some(packed) = self.packed.get(name) else { bail!("the kernel has no module {name}") };
        if packed.extension().is_some_and(|extension| extension == "ko") {
            return Ok(Some(packed.clone()));
        }
        let file = self.unpacked_dir.join(format!("{name}.ko"));
        if !file.exists() {
            unpack(packed, &file)?;
        }
        Ok(Some(file))
    }
}

/// The order in which to insert `wanted` and what they need, each once, dependencies first.
///
/// # Errors
/// Those of `needs`. A circle, which the kernel's build excludes, is cut where it closes.
fn insertion_order(
    wanted: &[&str],
    mut needs: impl FnMut(&str) -> Result<Vec<String>>,
) -> Result<Vec<String>> {
    enum Step {
        Visit(String),
        Emit(String),
    }
    let mut order = Vec::new();
    let mut seen = BTreeSet::new();
    let mut steps: Vec<Step> = wanted.iter().rev().map(|name| Step::Visit(underscored(name))).collect();
    while let Some(step) = steps.pop() {
        match step {
            Step::Emit(name) => order.push(name),
            Step::Visit(name) => {
                if seen.insert(name.clone()) {
                    let below = needs(&name)?;
                    steps.push(Step::Emit(name));
                    steps.extend(below.into_iter().rev().map(Step::Visit));
                }
            }
        }
    }
    Ok(order)
}

/// The hard and the soft dependencies that a module's file declares.
fn dependencies(module: &[u8]) -> (Vec<String>, Vec<String>) {
    let mut hard = Vec::new();
    let mut soft = Vec::new();
    for field in module.split(|byte| *byte == 0) {
        // Most of the file is code: only short text can be one of the two fields.
        if let Some(list) = field.strip_prefix(b"depends=") {
            hard.extend(
                String::from_utf8_lossy(list).split(',').filter(|name| !name.is_empty()).map(underscored),
            );
        } else if let Some(list) = field.strip_prefix(b"softdep=pre:") {
            let text = String::from_utf8_lossy(list).into_owned();
            let before_post = text.split("post:").next().unwrap_or_default();
            soft.extend(before_post.split_whitespace().map(underscored));
        }
    }
    (hard, soft)
}

/// The kernel spells module names with underscores, files and people often with dashes.
fn underscored(name: &str) -> String {
    name.replace('-', "_")
}

/// `…/dm-mod.ko.xz` is dm_mod.
pub(crate) fn module_name(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    name.strip_suffix(".ko.xz").or_else(|| name.strip_suffix(".ko")).map(underscored)
}

fn collect(directory: &Path, into: &mut BTreeMap<String, PathBuf>) -> Result<()> {
    let entries = std::fs::read_dir(directory).with_context(|| format!("reading {}", directory.display()))?;
    for entry in entries {
        let entry = entry.with_context(|| format!("reading {}", directory.display()))?;
        let path = entry.path();
        if entry.file_type().with_context(|| format!("looking at {}", path.display()))?.is_dir() {
            collect(&path, into)?;
        } else if let Some(name) = module_name(&path) {
            into.insert(name, path);
        }
    }
    Ok(())
}

fn unpack(packed: &Path, file: &Path) -> Result<()> {
    let output = process::captured(Command::new("xz").arg("-dc").arg(packed), &[0])?;
    // Written aside and renamed: another boot, or another run, may unpack the same module at this moment.
    let home = file.parent().context("a module lies in a directory")?;
    let mut aside =
        tempfile::NamedTempFile::new_in(home).with_context(|| format!("writing to {}", home.display()))?;
    aside.write_all(&output.stdout).with_context(|| format!("writing {}", aside.path().display()))?;
    aside.persist(file).with_context(|| format!("renaming to {}", file.display()))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_are_read_from_modinfo() {
        let module =
            b"\x7fELF code\0license=GPL\0softdep=pre: crc32c post: later\0depends=dm-mod,libcrc32c\0x";
        let (hard, soft) = dependencies(module);
        assert_eq!(hard, ["dm_mod", "libcrc32c"]);
        assert_eq!(soft, ["crc32c"]);
        assert_eq!(dependencies(b"\0depends=\0").0, Vec::<String>::new());
    }

    #[test]
    fn order_puts_dependencies_first_and_each_once() {
        let graph = |name: &str| {
            Ok(match name {
                "dm_crypt" | "dm_thin_pool" => vec!["dm_mod".to_owned(), "lib".to_owned()],
                "dm_mod" => vec!["lib".to_owned()],
                _ => Vec::new(),
            })
        };
        let order = insertion_order(&["ext4", "dm-crypt", "dm-thin-pool"], graph).unwrap();
        assert_eq!(order, ["ext4", "lib", "dm_mod", "dm_crypt", "dm_thin_pool"]);
    }

    #[test]
    fn a_circle_ends() {
        let graph = |name: &str| Ok(vec![if name == "a" { "b" } else { "a" }.to_owned()]);
        assert_eq!(insertion_order(&["a"], graph).unwrap(), ["b", "a"]);
    }

    #[test]
    fn names_of_files() {
        assert_eq!(module_name(Path::new("x/dm-mod.ko.xz")).as_deref(), Some("dm_mod"));
        assert_eq!(module_name(Path::new("x/modules.order")), None);
    }
}
