//! The rules, each both ways.
