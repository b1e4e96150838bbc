//! The work of a program under strace(1).

use std::path::Path;
use std::process::Command;

use crate::error::Result;
use crate::subject::{AckBy, Program};
use crate::trace::{Injection, Tracer};

/// A program of which strace(1) reports the system calls, and sync calls to make for it.
pub(super) struct Trace<'a> {
    pub(super) line: &'a str,
    pub(super) injections: &'a [Injection],
}

impl Trace<'_> {
    /// Starts a tracer for the work at a place.
    pub(super) fn begin(&self, place: &Path) -> Result<Tracer> {
        Tracer::start(place, self.injections.to_vec())
    }

    /// Returns the program with strace before it.
    pub(super) fn program(&self, tracer: &Tracer) -> Program {
        let mut shell = Command::new("/bin/sh");
        shell.arg("-c").arg(self.line);
        let traced = tracer.command(&shell);
        let words = std::iter::once(traced.get_program()).chain(traced.get_args());
        // As every sh(1) takes it: not all know the $'...' of a word that is shown to people.
        let quoted = words.map(|word| format!("'{}'", word.to_string_lossy().replace('\'', r"'\''")));
        let line = format!("exec {}", quoted.collect::<Vec<_>>().join(" "));
        Program { line, ack: AckBy::ControlFile }
    }
}
