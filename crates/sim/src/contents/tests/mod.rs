//! Tests of contents and crash rules against two slow oracles, with a proof that the oracles find mistakes.
//!
//! - `trial`: contents, with a `History` of each block (the conformance kit's) and a list of all commands.
//! - `streams`: random streams of commands; all reads, and all states after a cut, must be legal.
//! - `reach`: small scripts, whose legal outcomes are all enumerated; each must occur with some seed.
//! - `mutated`: wrong drives, each of which `streams` or `reach` must find.
//! - `plain`: single cases; `damage`: damage beyond the rules.

mod damage;
mod mutated;
mod plain;
mod reach;
mod streams;
mod trial;
