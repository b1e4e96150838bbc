//! Work of a program under strace(1).

use std::path::Path;
use std::process::Command;

use crate::error::{Error, Result};
use crate::posix::Follower;
use crate::subject::{Program, left_running, shown};
use crate::trace::{Injection, SyncCall, TraceOptions, TracedCalls, Tracer, Writeback};

/// Program whose system calls strace(1) reports, the sync calls to make on its behalf, and the chosen
/// writeback.
#[derive(Clone, Copy)]
pub(crate) struct Trace<'a> {
    pub(crate) program: &'a Program,
    pub(crate) injections: &'a [Injection],
    /// Sync calls that are skipped and reported as successful.
    pub(crate) left_out: &'a [SyncCall],
    /// Choice of writeback; `None` for the kernel's own.
    pub(crate) writeback: Option<Writeback>,
}

impl<'a> Trace<'a> {
    /// Returns the trace of an unchanged program.
    pub(crate) const fn new(program: &'a Program) -> Self {
        Self { program, injections: &[], left_out: &[], writeback: None }
    }

    /// Starts a tracer for the work at a place, which passes each call to `follower`. With `is_modelled` the
    /// additional sync calls are only reported to the follower.
    pub(super) fn begin(
        &self,
        place: &Path,
        follower: Option<Follower>,
        is_modelled: bool,
    ) -> Result<Tracer> {
        let (injections, left_out) = (self.injections.to_vec(), self.left_out.to_vec());
        let writeback = self.writeback;
        let options =
            TraceOptions { injections, left_out, writeback, follower, is_modelled, kills_leftovers: true };
        Tracer::with(place, options)
    }

    /// Returns the error for processes that the program has left running; `None` if there are none.
    pub(super) fn left_running(&self, traced: &TracedCalls) -> Option<Error> {
        (!traced.left.is_empty())
            .then(|| Error::failed(shown(&self.program.line), left_running(&traced.left)))
    }

    /// Returns the program with strace before it.
    pub(super) fn program(&self, tracer: &Tracer) -> Program {
        let mut shell = Command::new("/bin/sh");
        shell.arg("-c").arg(&self.program.line);
        let traced = tracer.command_as(&shell, self.program.user.as_ref());
        let words = std::iter::once(traced.get_program()).chain(traced.get_args());
        // Every sh(1) accepts single quotes; not all accept the $'...' of words shown to people.
        let quoted = words.map(|word| format!("'{}'", word.to_string_lossy().replace('\'', r"'\''")));
        // A script has the name of its first line in messages, so that failures are attributed to the program
        // instead of strace.
        let name = self.program.line.lines().next().unwrap_or_default().trim_start_matches("# ");
        let line = format!("# {name}\nexec {}", quoted.collect::<Vec<_>>().join(" "));
        Program::acknowledging(line)
    }
}
