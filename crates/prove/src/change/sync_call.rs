//! A sync call that the program does not make: it runs again and the call is made for it, which is recorded and explored.

use plumb_report::document::ProofDocument;

use crate::judge::JudgeError;
use crate::proof::{Prover, Watch};
use crate::session::RecordOptions;

/// Puts into the document the first sync call that removes a failure, for each.
pub(super) fn put(
    _prover: &Prover<'_>,
    _options: &RecordOptions,
    _document: &mut ProofDocument,
    _watch: Watch<'_>,
) -> Result<(), JudgeError> {
    Ok(())
}
