//! Debian's kernels: found with apt, downloaded and unpacked into the cache, never installed.
//!
//! The guests run common kernels: the stable kernel of Debian 12 (6.1) and the newer one of its security
//! archive (6.12). Both matter because they treat a disabled write cache differently. An unpacked kernel is
//! used again without a network. QEMU boots the kernel by its PVH entry: an emulated machine that
//! decompresses it takes twice the processor time for its boot.

use std::io::{Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;

use crate::packages::apt_get;
use crate::process;

/// The kernel line to boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Line {
    /// 6.12, from Debian 12's security archive
    #[value(name = "6.12")]
    V6_12,
    /// 6.1, Debian 12's own
    #[value(name = "6.1")]
    V6_1,
}

impl Line {
    /// Returns the directory name in the cache, and what the version in the package's name starts with.
    const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::V6_12 => ("6.12", "6.12."),
            Self::V6_1 => ("6.1", "6.1.0-"),
        }
    }
}

/// Unpacked kernel.
#[derive(Debug)]
pub(crate) struct Kernel {
    /// Release as `uname -r` prints it.
    pub release: String,
    /// The kernel itself, an ELF file.
    pub image: PathBuf,
    /// Directory of the unpacked package.
    pub root: PathBuf,
}

/// Returns the kernel of a line, from the cache or from apt.
///
/// # Errors
/// If apt has no such kernel, or it cannot be downloaded or unpacked.
pub(crate) fn fetch(line: Line, cache: &Path) -> Result<Kernel> {
    let home = cache.join(format!("kernel-{}", line.names().0));
    if !home.is_dir() {
        let package = newest_package(line)?;
        eprintln!("downloading {package}");
        download(&package, &home)?;
    }
    let release = only_entry(&home.join("lib/modules"))?;
    let image = home.join(format!("boot/vmlinux-{release}"));
    if !image.exists() {
        unpack(&home.join(format!("boot/vmlinuz-{release}")), &image)?;
    }
    Ok(Kernel { image, root: home, release })
}

/// Extracts the kernel itself from the image that Debian ships.
fn unpack(packed: &Path, image: &Path) -> Result<()> {
    let bytes = std::fs::read(packed).with_context(|| format!("reading {}", packed.display()))?;
    let (program, payload) = payload(&bytes).with_context(|| format!("reading {}", packed.display()))?;
    let mut input = tempfile::tempfile().context("making a temporary file")?;
    input.write_all(payload).and_then(|()| input.rewind()).context("writing a temporary file")?;
    let output = process::captured(Command::new(program).arg("-dc").stdin(input), &[0])?;
    write_aside(&output.stdout, image)
}

/// Returns the program that unpacks a bootable image, and the part of the image that it unpacks.
///
/// Source: Linux, Documentation/arch/x86/boot.rst (`setup_sects`, `payload_offset`, `payload_length`); the
/// last four bytes of the payload are its size when unpacked (scripts/Makefile.lib, `size_append`).
fn payload(image: &[u8]) -> Result<(&'static str, &[u8])> {
    const SETUP_SECTS: usize = 0x1f1;
    const PAYLOAD_OFFSET: usize = 0x248;
    const PAYLOAD_LENGTH: usize = 0x24c;
    const SIZE: usize = 4;
    let number = |at: usize| {
        let bytes = image.get(at..at + 4).context("the image ends in its header")?;
        Ok::<_, anyhow::Error>(u32::from_le_bytes(bytes.try_into()?) as usize)
    };
    let setup = (1 + number(SETUP_SECTS)? % 256) * 512;
    let (start, length) = (setup + number(PAYLOAD_OFFSET)?, number(PAYLOAD_LENGTH)?);
    let payload = image.get(start..start + length.saturating_sub(SIZE)).context("the image ends early")?;
    match payload {
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Ok(("zstd", payload)),
        [0xfd, b'7', b'z', b'X', b'Z', ..] => Ok(("xz", payload)),
        _ => bail!("the kernel in it is packed neither by zstd nor by xz"),
    }
}

/// Writes a file of the cache under a temporary name and renames it, since another run may write the same one
/// now.
///
/// # Errors
/// If it cannot be written.
pub(crate) fn write_aside(contents: &[u8], file: &Path) -> Result<()> {
    let home = file.parent().context("a file lies in a directory")?;
    let mut aside =
        tempfile::NamedTempFile::new_in(home).with_context(|| format!("writing to {}", home.display()))?;
    aside.write_all(contents).with_context(|| format!("writing {}", aside.path().display()))?;
    aside.persist(file).with_context(|| format!("renaming to {}", file.display()))?;
    Ok(())
}

/// Returns the newest kernel package of a line in apt's lists, refreshing the lists once if there is none.
fn newest_package(line: Line) -> Result<String> {
    if let Some(package) = newest(&search()?, line) {
        return Ok(package);
    }
    apt_get(&["update"])?;
    newest(&search()?, line).with_context(|| format!("apt offers no kernel {} for amd64", line.names().0))
}

fn search() -> Result<String> {
    let names = "^linux-image-6.*-amd64-unsigned$";
    process::text(Command::new("apt-cache").args(["search", "--names-only", names]))
}

/// Returns the plain (not cloud, not real-time) kernel of the highest version in apt-cache's list.
fn newest(list: &str, line: Line) -> Option<String> {
    list.lines()
        .filter_map(|text| text.split_whitespace().next())
        .filter_map(|package| {
            let version = package.strip_prefix("linux-image-")?.strip_suffix("-amd64-unsigned")?;
            let plain = version.starts_with(line.names().1)
                && !version.ends_with("-cloud")
                && !version.ends_with("-rt");
            plain.then(|| (numbers(version), package.to_owned()))
        })
        .max()
        .map(|(_, package)| package)
}

/// Returns the numbers in a version, for ordering.
fn numbers(version: &str) -> Vec<u64> {
    version.split(|letter: char| !letter.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect()
}

/// Downloads and unpacks a package. `home` appears only when it is complete.
fn download(package: &str, home: &Path) -> Result<()> {
    let cache = home.parent().context("the cache has no parent directory")?;
    let work = tempfile::tempdir_in(cache).context("making a directory to download to")?;
    let mut command = Command::new("apt-get");
    command.args(["download", "--quiet", "-o", "APT::Sandbox::User=root", package]).current_dir(work.path());
    process::run(command.stdout(std::io::stderr()))?;
    let deb = work.path().join(only_entry(work.path())?);
    let unpacked = work.path().join("unpacked");
    process::run(Command::new("dpkg-deb").arg("-x").arg(&deb).arg(&unpacked))?;
    match std::fs::rename(&unpacked, home) {
        // Another run may have been faster; its kernel is the same.
        Err(_) if home.is_dir() => Ok(()),
        renamed => renamed.with_context(|| format!("renaming to {}", home.display())),
    }
}

/// Returns the name of the only entry of a directory.
fn only_entry(directory: &Path) -> Result<String> {
    let names: Vec<_> = std::fs::read_dir(directory)
        .and_then(|entries| entries.map(|entry| Ok(entry?.file_name())).collect::<std::io::Result<_>>())
        .with_context(|| format!("reading {}", directory.display()))?;
    ensure!(names.len() == 1, "expected one entry in {}, found {}", directory.display(), names.len());
    names[0]
        .clone()
        .into_string()
        .ok()
        .with_context(|| format!("a name in {} is not text", directory.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "\
linux-image-6.1.0-47-amd64-unsigned - Linux 6.1 for 64-bit PCs
linux-image-6.1.0-9-amd64-unsigned - Linux 6.1 for 64-bit PCs
linux-image-6.1.0-56-rt-amd64-unsigned - Linux 6.1 for 64-bit PCs, PREEMPT_RT
linux-image-6.12.107+deb12-amd64-unsigned - Linux 6.12 for 64-bit PCs
linux-image-6.12.99+deb12-amd64-unsigned - Linux 6.12 for 64-bit PCs
linux-image-6.12.111+deb12-cloud-amd64-unsigned - Linux 6.12 for x86-64 cloud
";

    #[test]
    fn the_newest_plain_kernel_is_chosen() {
        assert_eq!(newest(LIST, Line::V6_1).as_deref(), Some("linux-image-6.1.0-47-amd64-unsigned"));
        assert_eq!(newest(LIST, Line::V6_12).as_deref(), Some("linux-image-6.12.107+deb12-amd64-unsigned"));
        assert_eq!(newest("", Line::V6_12), None);
    }

    #[test]
    fn the_payload_of_an_image_is_found() {
        let mut image = vec![0; 0x600];
        image[0x1f1] = 1;
        image[0x248] = 0x10;
        image[0x24c] = 12;
        image[0x410..0x41c].copy_from_slice(b"\x28\xb5\x2f\xfdkernSIZE");
        assert_eq!(payload(&image).unwrap(), ("zstd", &b"\x28\xb5\x2f\xfdkern"[..]));
        image[0x24d] = 2;
        assert!(payload(&image).is_err());
    }
}
