//! `cargo xtask release`: the static-pie binary, and a Debian package with manual pages, completions and
//! systemd units.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};

use crate::{process, workspace};

/// Explicit target, which keeps `crt-static` away from build scripts and procedural macros.
#[cfg(target_arch = "x86_64")]
const TARGET: &str = "x86_64-unknown-linux-gnu";
/// Explicit target, which keeps `crt-static` away from build scripts and procedural macros.
#[cfg(target_arch = "aarch64")]
const TARGET: &str = "aarch64-unknown-linux-gnu";

/// Maximum size of a release binary. The C library takes a megabyte of it.
const BINARY_BYTES_MAX: u64 = 18_500_000;

/// Builds both and prints their paths.
pub(crate) fn main() -> Result<ExitCode> {
    let root = workspace::root()?;
    let binary = static_binary(&root)?;
    let size = fs::metadata(&binary).context("looking at the binary")?.len();
    ensure!(size <= BINARY_BYTES_MAX, "{} has {size} bytes, over {BINARY_BYTES_MAX}", binary.display());
    let package = debian_package(&root, &binary)?;
    println!("{} ({:.1} MiB)", binary.display(), size as f64 / f64::from(1 << 20));
    println!("{}", package.display());
    Ok(ExitCode::SUCCESS)
}

/// Builds a binary that runs on any Linux of this architecture, without dynamic loader and shared libraries.
fn static_binary(root: &Path) -> Result<PathBuf> {
    eprintln!("release: building the static binary");
    // Since 2.36 glibc supports packed relocation tables, which save 0.4 MB.
    let flags =
        "-C target-feature=+crt-static -C relocation-model=pie -C link-arg=-Wl,-z,pack-relative-relocs";
    process::run(
        Command::new("cargo")
            .args(["build", "--profile", "dist", "--package", "plumb", "--target", TARGET])
            .env("RUSTFLAGS", flags)
            .current_dir(root),
    )?;
    let binary = workspace::target_directory(root)?.join(TARGET).join("dist/plumb");
    ensure!(binary.is_file(), "cargo built no {}", binary.display());
    Ok(binary)
}

/// Lays out the package's tree and packs it with dpkg-deb.
fn debian_package(root: &Path, binary: &Path) -> Result<PathBuf> {
    eprintln!("release: packing the Debian package");
    let tree = tempfile::tempdir().context("making a directory for the package")?;
    let at = |path: &str| tree.path().join(path);
    install(binary, &at("usr/bin/plumb"))?;
    let units = root.join("integrations/systemd");
    for unit in fs::read_dir(&units).context("reading the units")? {
        let unit = unit.context("reading the units")?;
        install(&unit.path(), &at("usr/lib/systemd/system").join(unit.file_name()))?;
    }
    let documents = workspace::tracked(root, &[".md", ".png"])?;
    let documents = documents.into_iter().filter(|path| !path.contains('/') || path.starts_with("docs/"));
    for document in documents.chain(["LICENSE-MIT", "LICENSE-APACHE"].map(str::to_owned)) {
        install(&root.join(&document), &at("usr/share/doc/plumb").join(&document))?;
    }
    manual_pages(binary, &at("usr/share/man/man1"))?;
    for (shell, place) in [
        ("bash", "usr/share/bash-completion/completions/plumb"),
        ("zsh", "usr/share/zsh/vendor-completions/_plumb"),
        ("fish", "usr/share/fish/vendor_completions.d/plumb.fish"),
    ] {
        let script = process::text(Command::new(binary).args(["completions", shell]))?;
        write(&at(place), script.as_bytes())?;
    }
    write(&at("DEBIAN/control"), control().as_bytes())?;
    let package =
        binary.with_file_name(format!("plumb_{}_{}.deb", env!("CARGO_PKG_VERSION"), architecture()));
    process::run(
        Command::new("dpkg-deb").args(["--build", "--root-owner-group"]).arg(tree.path()).arg(&package),
    )?;
    Ok(package)
}

/// Writes the manual pages with the binary itself, compressed as Debian requires.
fn manual_pages(binary: &Path, directory: &Path) -> Result<()> {
    fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
    process::run(Command::new(binary).arg("manual").arg(directory))?;
    for page in fs::read_dir(directory).context("reading the manual pages")? {
        process::run(
            Command::new("gzip").args(["-9", "-n"]).arg(page.context("reading the manual pages")?.path()),
        )?;
    }
    Ok(())
}

fn control() -> String {
    format!(
        "Package: plumb\nVersion: {}\nArchitecture: {}\nMaintainer: The plumb authors <plumb@localhost>\n\
         Section: admin\nPriority: optional\nDescription: how deep does a write go\n Surveys the write path from the \
         application to the drive, measures what a\n durable write costs, and says what may be lost at a power cut.\n",
        env!("CARGO_PKG_VERSION"),
        architecture(),
    )
}

/// Returns Debian's name of the architecture.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn install(from: &Path, to: &Path) -> Result<()> {
    write(to, &fs::read(from).with_context(|| from.display().to_string())?)?;
    let permissions = fs::metadata(from).with_context(|| from.display().to_string())?.permissions();
    fs::set_permissions(to, permissions).with_context(|| to.display().to_string())
}

fn write(to: &Path, bytes: &[u8]) -> Result<()> {
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent).with_context(|| parent.display().to_string())?;
    }
    fs::write(to, bytes).with_context(|| to.display().to_string())
}
