//! The document itself, as the schema of its kind describes it (`schemas/`).

use serde::Serialize;

/// The document as indented JSON, ending in a newline.
///
/// # Errors
/// If a figure cannot be written as JSON.
pub fn document(document: &impl Serialize) -> Result<String, serde_json::Error> {
    let mut text = serde_json::to_string_pretty(document)?;
    text.push('\n');
    Ok(text)
}
