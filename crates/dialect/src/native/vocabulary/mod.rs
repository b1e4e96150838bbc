//! How each kind of value is said: one text form for the command line and for files.

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

/// Type of a value that a word takes. `parse(show(x))` is `x`, to the last bit.
pub(super) trait Vocabulary: Sized {
    /// Completes the sentence "expected ...".
    const EXPECTED: &'static str;
    /// True if a file holds it as an array; on the command line there are commas between the elements.
    const IS_LIST: bool = false;

    /// Returns all values, where there are few.
    fn names() -> Vec<&'static str> {
        Vec::new()
    }

    /// Parses `text`; returns `None` if it is not what is expected.
    fn parse(text: &str) -> Option<Self>;

    /// Returns how it is said.
    fn show(&self) -> String;
}

#[cfg(test)]
mod tests;
