//! Pages opened in a real browser, without a window.

use std::path::Path;
use std::process::Command;

use crate::skip;

/// Result of a page in the browser.
#[derive(Debug)]
pub struct BrowserOutput {
    /// Document after its scripts have run.
    pub dom: String,
    /// Messages of the browser, those of scripts on lines with `CONSOLE`.
    pub said: String,
}

/// Opens the page `html` in Chromium, and returns its document after five seconds of virtual time. The page
/// and the browser's profile are written to `directory`, which is a temporary one. Returns `None`, and counts
/// the test as skipped, where there is no Chromium.
///
/// # Panics
/// If the page cannot be written, or the browser does not start.
pub fn open(html: &str, name: &str, directory: &Path) -> Option<BrowserOutput> {
    let file = directory.join(format!("{name}.html"));
    std::fs::write(&file, html).expect("a page on the disk");
    let Some(browser) =
        ["chromium", "chromium-browser", "google-chrome"].into_iter().find(|name| is_here(name))
    else {
        skip(&format!("{name}: no Chromium on this machine"));
        return None;
    };
    let output = Command::new(browser)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-background-networking",
            "--allow-file-access-from-files",
            "--disable-sync",
            "--no-first-run",
            "--enable-logging=stderr",
            "--v=0",
            "--virtual-time-budget=5000",
            "--dump-dom",
        ])
        .arg(format!("--user-data-dir={}", directory.join("profile").display()))
        .arg(format!("file://{}", file.display()))
        .output()
        .expect("Chromium starts");
    Some(BrowserOutput {
        dom: String::from_utf8_lossy(&output.stdout).into_owned(),
        said: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}

fn is_here(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
}
