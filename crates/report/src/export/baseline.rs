//! Baseline of accepted failures of proofs: a text with a fingerprint at the beginning of each line, and a
//! description after `#`.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::document::ProofDocument;

/// Returns the fingerprints of accepted failures.
///
/// # Errors
/// A sentence that names the first invalid word.
pub fn read(text: &str) -> Result<BTreeSet<String>, String> {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default());
    let fingerprints = lines.filter_map(|line| line.split_whitespace().next());
    let is_one = |word: &str| word.len() == 16 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    match fingerprints.clone().find(|word| !is_one(word)) {
        Some(word) => {
            Err(format!("`{word}` is not the fingerprint of a failure: write the file with --write-baseline"))
        }
        None => Ok(fingerprints.map(str::to_owned).collect()),
    }
}

/// Returns a baseline that accepts all failures of a document.
pub fn write(document: &ProofDocument) -> String {
    let mut text = "# Failures that `plumb prove ci --baseline` accepts: a fingerprint each.\n".to_owned();
    for failure in &document.failures {
        let class = failure.class.name();
        // Writing to a string does not fail.
        writeln!(text, "{} # {class}: {}", failure.fingerprint(), failure.words.replace('\n', " ")).ok();
    }
    text
}
