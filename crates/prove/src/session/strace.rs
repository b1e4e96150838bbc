//! The work of a program under strace(1).

use std::path::Path;
use std::process::Command;

use crate::error::Result;
use crate::subject::{AckBy, Program};
use crate::trace::{Injection, Tracer, Writeback};

/// A program of which strace(1) reports the system calls, the sync calls to make for it, and the writeback
/// that plumb does.
#[derive(Clone, Copy)]
pub(crate) struct Trace<'a> {
    pub(crate) line: &'a str,
    pub(crate) injections: &'a [Injection],
    /// `None`: the kernel writes back when it likes.
    pub(crate) writeback: Option<Writeback>,
}

impl Trace<'_> {
    /// Starts a tracer for the work at a place.
    pub(super) fn begin(&self, place: &Path) -> Result<Tracer> {
        Tracer::start(place, self.injections.to_vec(), self.writeback)
    }

    /// Returns the program with strace before it.
    pub(super) fn program(&self, tracer: &Tracer) -> Program {
        let mut shell = Command::new("/bin/sh");
        shell.arg("-c").arg(self.line);
        let traced = tracer.command(&shell);
        let words = std::iter::once(traced.get_program()).chain(traced.get_args());
        // Every sh(1) takes single quotes; not all know the $'...' of a word that is shown to people.
        let quoted = words.map(|word| format!("'{}'", word.to_string_lossy().replace('\'', r"'\''")));
        // A script is called by its first line, where it fails: by the program, not by strace.
        let name = self.line.lines().next().unwrap_or_default().trim_start_matches("# ");
        let line = format!("# {name}\nexec {}", quoted.collect::<Vec<_>>().join(" "));
        Program { line, ack: AckBy::ControlFile }
    }
}
