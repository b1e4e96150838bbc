//! Text for people: foreign words made fit to print, words of a command line quoted for a shell, and the
//! known word that was probably meant.
//!
//! The crate depends on no other crate of the workspace, and makes no system calls.

mod nearest;
mod printable;

pub use nearest::nearest;
pub use printable::{excerpt, is_bidi_control, printable, shell_word};
