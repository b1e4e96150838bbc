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

/// What can be said as the value of a word. `parse(show(x))` is `x`, to the last bit.
pub(super) trait Vocabulary: Sized {
    /// Completes the sentence "expected ...".
    const EXPECTED: &'static str;
    /// Whether a file holds it as an array; on the command line there are commas between the elements.
    const IS_LIST: bool = false;

    /// All values, where there are few.
    fn names() -> Vec<&'static str> {
        Vec::new()
    }

    /// What `text` says; `None` if it is not what is expected.
    fn parse(text: &str) -> Option<Self>;

    /// How it is said.
    fn show(&self) -> String;
}

#[cfg(test)]
mod tests;
