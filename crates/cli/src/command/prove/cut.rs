//! `plumb prove cut`: cuts the power of a program that is being recorded for a proof.

use std::sync::Arc;

use clap::Args;
use plumb_block::FailureKind;
use plumb_prove::session::{NamedRecording, PowerSwitch, ProofOrder};
use plumb_serve::named::ServiceError;
use plumb_serve::named::control::{ControlError, Order, RefusedKind, give};
use plumb_state::places;

use crate::command::serving;
use crate::exit::{Exit, Refusal};
use crate::terminal;

/// Arguments of `plumb prove cut`.
#[derive(Debug, Args)]
pub(crate) struct CutArguments {
    /// The name of the proof: --name of `plumb prove app` or `plumb prove ci`
    #[arg(value_name = "NAME")]
    name: String,
}

/// Makes the power switch of a recording available under a name, until the result is dropped.
pub(super) fn named(name: &str, power: &Arc<PowerSwitch>) -> Result<NamedRecording, Refusal> {
    let sockets = places::proof_sockets(&places::run());
    NamedRecording::begin(&sockets, name, power).map_err(|error| match error {
        ServiceError::Taken(_) => {
            let message =
                format!("--name {name}: a program is being recorded under this name: choose another");
            Refusal::new(FailureKind::Refused, message)
        }
        error => {
            let Refusal { kind, message } = serving::refusal(error);
            Refusal::new(kind, format!("--name: {message}"))
        }
    })
}

/// Runs the command as typed.
pub(crate) fn run(CutArguments { name }: &CutArguments) -> anyhow::Result<Exit> {
    let sockets = places::proof_sockets(&places::run());
    give::<_, ()>(&sockets, name, &Order::Own(ProofOrder::Cut)).map_err(|error| match &error {
        ControlError::NoSuchDrive { .. } | ControlError::Gone { .. } => {
            let message = format!(
                "no program is being recorded as `{name}`: start it with `plumb prove app --name`, as the same user, and \
                 cut its power while it runs"
            );
            Refusal::new(FailureKind::Usage, message)
        }
        ControlError::Refused { refused, .. } if refused.kind == RefusedKind::UnsafeNow => {
            Refusal::because(FailureKind::Refused, error)
        }
        _ => Refusal::because(FailureKind::Failed, error),
    })?;
    terminal::print(&format!("The power of {name} is cut: its proof explores what that may leave.\n"))?;
    Ok(Exit::Done)
}
