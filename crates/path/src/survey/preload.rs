//! Libraries that are loaded before the C library and turn its syncs into nothing, such as libeatmydata
//! (ld.so(8), LD_PRELOAD and /etc/ld.so.preload).
//!
//! Libraries are known by their file names. Calls of a statically linked program pass them by.

use plumb_linux::tree::Absence;

use super::surveyor::Surveyor;
use crate::facts::{Mark, Node};

/// Libraries that are loaded into every program, by a way that leads outside no recording.
const EVERY_PROGRAM: &str = "/proc/self/root/etc/ld.so.preload";
/// Names of libraries that take the syncs of a program, without `lib` and what follows `.so`: Debian's and
/// Fedora's libeatmydata, and nosync of Fedora's mock.
const INTERPOSERS: [&str; 3] = ["eatmydata", "nosync", "nofsync"];

impl Surveyor<'_> {
    /// Marks the application if its syncs are taken from it: the process that was named, or every program.
    pub(super) fn preloads(&self, application: &mut Node, target: &str) {
        let process = process_of(target).map(|process| format!("/proc/{process}/maps"));
        for file in process.into_iter().chain([EVERY_PROGRAM.to_owned()]) {
            let shown = file.trim_start_matches("/proc/self/root");
            let text = match self.tree.text(&file) {
                Ok(text) => text,
                Err(Absence::Denied) => {
                    let question = format!("{shown}: libraries that answer syncs");
                    application.mark(self.refused(question));
                    continue;
                }
                Err(Absence::NotThere) => continue,
                Err(absence) => {
                    application.saw(
                        shown,
                        absence.to_string(),
                        "whether a library answers syncs is not known",
                    );
                    continue;
                }
            };
            let Some(library) = text.split_whitespace().find(|word| is_interposer(word)) else { continue };
            application.saw(
                shown,
                library,
                "this library answers fsync and its kin itself: nothing is synced",
            );
            application.mark(Mark::SyncsPreloaded { library: format!("{library} ({shown})") });
        }
    }
}

/// Returns the process whose file was named: `/proc/4711/fd/3`.
fn process_of(target: &str) -> Option<u32> {
    target.strip_prefix("/proc/")?.split('/').next()?.parse().ok()
}

/// Returns true for the path of a library that takes syncs.
pub(super) fn is_interposer(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or_default();
    let Some((stem, version)) = name.split_once(".so") else { return false };
    let is_library = version.is_empty() || version.starts_with('.');
    is_library && INTERPOSERS.contains(&stem.strip_prefix("lib").unwrap_or(stem))
}
