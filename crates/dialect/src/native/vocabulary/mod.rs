//! Text forms of values, common to command lines and files.

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

/// Type of the value of a word. `parse(show(x))` is `x`, to the last bit.
pub(super) trait Vocabulary: Sized {
    /// Continuation of "expected ..." in messages.
    const EXPECTED: &'static str;
    /// True if a file contains it as an array; command lines separate the elements by commas.
    const IS_LIST: bool = false;

    /// Returns all values, if there are few; else an empty list.
    fn names() -> Vec<&'static str> {
        Vec::new()
    }

    /// Parses `text`; `None` if it does not have the expected form.
    fn parse(text: &str) -> Option<Self>;

    /// Returns the text form.
    fn show(&self) -> String;
}

#[cfg(test)]
mod tests;
