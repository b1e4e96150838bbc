//! `cargo xtask docs`: the picture of the README, and the documents' commands in their whole length.

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

use crate::{process, workspace};

/// The picture, from the root of the repository.
const PICTURE: &str = "docs/images/check.png";
/// Width and height of the browser's window: the first screen of a page.
const WINDOW: &str = "1280,800";

/// Draws the picture anew, then runs the commands of README and guides as they stand, and compares what they
/// print.
pub(crate) fn main() -> Result<ExitCode> {
    let root = workspace::root()?;
    draw(&root)?;
    eprintln!("docs: running the commands of README and guides; this takes some minutes");
    process::run(
        Command::new("cargo")
            .args(["test", "--release", "--package", "plumb", "--test", "all", "documents::"])
            .env("PLUMB_DOCUMENTS", "whole")
            .current_dir(&root),
    )?;
    Ok(ExitCode::SUCCESS)
}

/// Photographs the first screen of the page of a real check, with Chromium.
fn draw(root: &Path) -> Result<()> {
    let place = tempfile::tempdir().context("making a directory for the check")?;
    let run = place.path().join("run");
    eprintln!("docs: checking {}", place.path().display());
    let mut plumb = Command::new("cargo");
    plumb.args(["run", "--release", "--quiet", "--package", "plumb", "--", "check"]).current_dir(root);
    // A finding (exit 1) makes a page like any other.
    process::captured(plumb.arg(place.path()).arg("--out").arg(&run), &[0, 1])?;
    process::run(
        Command::new("chromium")
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--hide-scrollbars",
                "--virtual-time-budget=5000",
            ])
            .arg(format!("--window-size={WINDOW}"))
            .arg(format!("--user-data-dir={}", place.path().join("profile").display()))
            .arg(format!("--screenshot={}", root.join(PICTURE).display()))
            .arg(format!("file://{}", run.join("report.html").display())),
    )?;
    println!("{PICTURE}");
    Ok(())
}
