//! Preloaded libraries that turn the syncs of the C library into no-ops, such as libeatmydata (ld.so(8),
//! LD_PRELOAD and /etc/ld.so.preload).
//!
//! Libraries are recognised by their file names. They do not affect statically linked programs.

use plumb_linux::tree::Absence;

use super::surveyor::Surveyor;
use crate::facts::{Mark, Node};

/// List of libraries preloaded into every program, by a path that stays inside a recording.
const EVERY_PROGRAM: &str = "/proc/self/root/etc/ld.so.preload";
/// Names of libraries that disable a program's syncs, without `lib` and the part from `.so` on: libeatmydata
/// of Debian and Fedora, and nosync of Fedora's mock.
const INTERPOSERS: [&str; 3] = ["eatmydata", "nosync", "nofsync"];

impl Surveyor<'_> {
    /// Marks the application if its syncs are disabled: the named process, or every program.
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

/// Returns the process in a path like `/proc/4711/fd/3`.
fn process_of(target: &str) -> Option<u32> {
    target.strip_prefix("/proc/")?.split('/').next()?.parse().ok()
}

/// Returns true for the path of a library that disables syncs.
pub(super) fn is_interposer(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or_default();
    let Some((stem, version)) = name.split_once(".so") else { return false };
    let is_library = version.is_empty() || version.starts_with('.');
    is_library && INTERPOSERS.contains(&stem.strip_prefix("lib").unwrap_or(stem))
}
