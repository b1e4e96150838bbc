//! What killed processes have left of drives: attachments whose server is gone. They are found even where the control socket is
//! gone as well.

use std::io;
use std::path::Path;

use super::place;

/// Whether there is such an attachment called `name`.
pub(crate) fn is_there(name: &str) -> bool {
    names().iter().any(|left| left == name)
}

/// Only root attaches, and only root may look.
fn names() -> Vec<String> {
    if !rustix::process::geteuid().is_root() {
        return Vec::new();
    }
    crate::attach::left().unwrap_or_default()
}

/// The names of the drives in `directory`, and of those of which killed processes have left something.
///
/// # Errors
/// As readdir(3); a directory that does not exist has none.
pub fn names_with_remains(directory: &Path) -> io::Result<Vec<String>> {
    let mut found = place::names(directory)?;
    found.extend(names());
    found.sort();
    found.dedup();
    Ok(found)
}
