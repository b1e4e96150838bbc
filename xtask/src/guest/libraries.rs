//! Programs of this machine for the guest, with the shared libraries that they need.
//!
//! The guest's root otherwise has only busybox. dmsetup, lvm, mdadm and the like are copied from here, with
//! their libraries according to `ldd`, to the same paths.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::cpio::Archive;

/// Adds a program as `/sbin/NAME`, and its libraries where the loader looks for them.
///
/// # Errors
/// If a file cannot be read.
pub(crate) fn add_program(
    archive: &Archive,
    program: &Path,
    name: &str,
    seen: &mut BTreeSet<PathBuf>,
) -> Result<()> {
    archive.copy(&format!("sbin/{name}"), program)?;
    for library in libraries(program)? {
        if seen.insert(library.clone()) {
            let path = library.to_str().with_context(|| format!("{} is not text", library.display()))?;
            archive.copy(path.trim_start_matches('/'), &library)?;
        }
    }
    Ok(())
}

/// Returns the shared libraries of a program; empty if it is static, which ldd reports as a failure.
fn libraries(program: &Path) -> Result<Vec<PathBuf>> {
    let output = Command::new("ldd").arg(program).output().context("running ldd")?;
    Ok(parse(&String::from_utf8_lossy(&output.stdout)))
}

/// Returns the paths in ldd's output: `name => /path (address)` and `/path/of/loader (address)`.
fn parse(text: &str) -> Vec<PathBuf> {
    text.lines()
        .filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')))
        .map(PathBuf::from)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_libraries() {
        let text = "\tlinux-vdso.so.1 (0x00007ffd)\n\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f)\n\
                    \t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n";
        let expected = ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"].map(PathBuf::from);
        assert_eq!(parse(text), expected);
        assert_eq!(parse("\tstatically linked\n"), Vec::<PathBuf>::new());
    }
}
