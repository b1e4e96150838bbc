//! The document itself, as `schemas/check.schema.json` describes it.

use crate::document::CheckDocument;

/// The document as indented JSON, ending in a newline.
///
/// # Errors
/// If a figure cannot be written as JSON.
pub fn document(document: &CheckDocument) -> Result<String, serde_json::Error> {
    let mut text = serde_json::to_string_pretty(document)?;
    text.push('\n');
    Ok(text)
}
