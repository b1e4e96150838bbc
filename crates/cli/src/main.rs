//! The `plumb` binary: parse, compose, exit code.

fn main() {}
