//! `plumb policy claim`: an administrator's word that a cache survives a power cut.

use std::path::Path;

use plumb_policy::claims::{self, Claim, Claims};
use plumb_report::document::policy::PolicyClaim;
use plumb_report::{Format, Kind};
use plumb_state::places::CLAIMS;

use super::host::{Host, refusal, refused_disk};
use crate::arguments::policy::ClaimArguments;
use crate::exit::{Exit, Refusal, refuse_if};
use crate::terminal;

pub(super) fn run(arguments: &ClaimArguments) -> anyhow::Result<Exit> {
    let format = arguments.shared.printed.format(Kind::Status)?;
    let mut host = Host::new(&arguments.shared)?;
    let file = arguments.shared.claims.as_path();
    if file == Path::new(CLAIMS) {
        host.need_root("record a claim for this machine")?;
    }
    if arguments.withdraw {
        return withdraw(&host, arguments, file, format);
    }
    let given = give(&mut host, arguments)?;
    let claim = &given.claim;
    let document = PolicyClaim {
        name: Some(given.name.clone()),
        claim: Some(claim.clone()),
        ..document(file, &claim.identity)
    };
    terminal::show_status(&document, format)?;
    if let Some(doubt) = given.doubt {
        terminal::say(&format!("plumb: the claim is recorded, but {doubt}"));
        return Ok(Exit::Finding);
    }
    Ok(Exit::Done)
}

/// A word that was recorded.
pub(super) struct Given {
    name: String,
    pub(super) claim: Claim,
    /// Why it does not count although it was recorded.
    pub(super) doubt: Option<String>,
}

/// Records the word, and reads the disk again with it.
pub(super) fn give(host: &mut Host, arguments: &ClaimArguments) -> anyhow::Result<Given> {
    let file = arguments.shared.claims.as_path();
    let view = host.disk(&arguments.device)?;
    if let Some(refused) = view.refusal.as_ref().filter(|_| host.is_root) {
        return Err(refused_disk(&view.name, refused));
    }
    let claim = claim(arguments, view.identity.clone().unwrap_or_default())?;
    claims::record(file, &claim, host.now).map_err(|error| refusal(error.into()))?;
    host.claims = Claims::load(file).map_err(|error| refusal(error.into()))?;
    let view = host.disk(&arguments.device)?;
    let doubt = claims::protection(&view, &host.claims, host.now).err();
    Ok(Given { name: view.name, claim, doubt })
}

fn claim(arguments: &ClaimArguments, identity: String) -> anyhow::Result<Claim> {
    let (Some(who), Some(until), Some(reason)) = (&arguments.by, arguments.until, &arguments.reason) else {
        return Err(Refusal::new(Exit::Usage, "a claim needs --by, --until and --reason").into());
    };
    for (option, text) in [("--by", who), ("--reason", reason)] {
        if text.trim().is_empty() {
            return Err(Refusal::new(
                Exit::Usage,
                format!("{option} is empty: a claim names its author and the reason"),
            )
            .into());
        }
    }
    Ok(Claim { identity, who: who.clone(), until, reason: reason.clone() })
}

fn withdraw(host: &Host, arguments: &ClaimArguments, file: &Path, format: Format) -> anyhow::Result<Exit> {
    let known = host.reader()?.one(&arguments.device).ok().and_then(|view| view.identity);
    let identity = known.unwrap_or_else(|| arguments.device.clone());
    let withdrawn = claims::withdraw(file, &identity).map_err(|error| refusal(error.into()))?;
    let message = format!("{} holds no claim for {identity}: nothing was withdrawn", file.display());
    refuse_if!(withdrawn == 0, Usage, message);
    terminal::show_status(&PolicyClaim { withdrawn, ..document(file, &identity) }, format)?;
    Ok(Exit::Done)
}

/// Builds the part of the document that all claim commands share, for `file`.
pub(super) fn document(file: &Path, identity: &str) -> PolicyClaim {
    PolicyClaim {
        schema: PolicyClaim::SCHEMA,
        file: file.to_owned(),
        identity: identity.to_owned(),
        name: None,
        claim: None,
        withdrawn: 0,
    }
}
