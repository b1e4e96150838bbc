//! Parsing of the model of a simulated drive.

use plumb_block::FailureKind;
use plumb_sim::model::{Model, ModelError, TypedError, TypedModel};

use crate::exit::Refusal;

/// Returns the model of this name or file, with the parameters that follow it.
pub(super) fn model(typed: &str) -> anyhow::Result<Model> {
    let named: TypedModel =
        typed.parse().map_err(|error: TypedError| Refusal::because(FailureKind::Usage, error))?;
    if named
        != (TypedModel {
            model: named.model.clone(),
            changes: named.changes.clone(),
            ..TypedModel::default()
        })
    {
        let message = format!(
            "`{typed}`: only parameters of the model can follow its name here; use --wce, --seed, --size \
             and --fault for the rest"
        );
        return Err(Refusal::new(FailureKind::Usage, message).into());
    }
    Ok(named.resolve().map_err(|error: ModelError| Refusal::because(FailureKind::Usage, error))?)
}
