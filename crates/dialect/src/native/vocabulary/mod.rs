//! How each kind of value is said.

mod access;
mod blocks;
mod choices;
mod content;
mod pace;
mod processors;
mod quantity;
mod trace;
mod weights;

pub(super) use choices::SyncKind;
pub(super) use weights::Weights;

#[cfg(test)]
mod tests;
