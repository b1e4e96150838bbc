//! Streams of requests of DiskSpd command lines.

mod access;
mod carried;
mod crews;
mod every_switch;
mod pace;

use std::io;

use plumb_dialect::diskspd::{self, Command, Invocation};
use plumb_workload::Span;

use crate::streams::crew::{self, Stream};

fn invocation(typed: &str) -> Invocation {
    let no_file = |path: &str| Err(io::Error::new(io::ErrorKind::NotFound, format!("no {path}")));
    match diskspd::parse(&crate::streams::arguments(typed), &crate::streams::machine(), &no_file) {
        Ok(Command::Run(invocation)) => invocation,
        other => panic!("{typed}: {other:?}"),
    }
}

/// Returns the only span of the command line `typed`.
fn span(typed: &str) -> Span {
    let meaning = invocation(typed).meaning(&crate::streams::machine(), &|_| None);
    let mut spans = meaning.unwrap_or_else(|error| panic!("{typed}: {error}")).scenario.spans;
    assert_eq!(spans.len(), 1, "{typed}");
    spans.remove(0)
}

/// Returns the stream of the command line `typed`.
fn stream(typed: &str) -> Stream {
    crew::run(&span(typed))
}

/// Returns the stream of `typed` for two seconds without a warm-up, for tests independent of time.
fn brief(typed: &str) -> Stream {
    stream(&format!("-W0 -d2 {typed}"))
}
