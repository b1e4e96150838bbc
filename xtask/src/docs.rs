//! `cargo xtask docs`: the picture of the README, and the full commands of the documents.

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

use crate::{process, workspace};

/// Path of the picture in the repository.
const PICTURE: &str = "docs/images/check.png";
/// Width and height of the browser's window: the first screen of a page.
const WINDOW: &str = "1280,800";

/// Draws the picture again, then runs the commands of README and guides as written, and compares their
/// output.
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

/// Takes a screenshot of the first screen of the page of a real check, with Chromium.
fn draw(root: &Path) -> Result<()> {
    let place = tempfile::tempdir().context("making a directory for the check")?;
    let run = place.path().join("run");
    eprintln!("docs: checking {}", place.path().display());
    let mut plumb = Command::new("cargo");
    plumb.args(["run", "--release", "--quiet", "--package", "plumb", "--", "check"]).current_dir(root);
    // A check with a finding (exit 1) has a page like any other.
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
