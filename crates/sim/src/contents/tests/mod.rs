//! Contents and crash rules against two slow oracles, and the proof that the oracles see.
//!
//! - `trial`: contents beside a `History` of each block (the conformance kit's) and a list of all commands.
//! - `streams`: random streams of commands; whatever is read, and whatever a cut leaves, must be legal.
//! - `reach`: small scripts, whose legal outcomes are enumerated one and all; each must come out of some
//!   seed.
//! - `mutated`: wrong drives, each of which one of the two must find.
//! - `plain`: single cases; `damage`: what is beyond the rules.

mod damage;
mod mutated;
mod plain;
mod reach;
mod streams;
mod trial;
