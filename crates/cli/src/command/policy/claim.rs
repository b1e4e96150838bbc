//! `plumb policy claim`: an administrator's word that a cache survives a power cut.

use std::path::Path;

use plumb_policy::claims::{self, Claim, Claims};
use plumb_report::printable::printable;
use plumb_state::places::CLAIMS;
use serde::Serialize;

use super::host::{Host, refusal, refused_disk};
use super::print;
use crate::arguments::policy::ClaimArguments;
use crate::exit::{Exit, Refusal};
use crate::terminal;

/// Document that `--json` prints.
#[derive(Serialize)]
pub(super) struct Document<'a> {
    schema: &'static str,
    file: &'a Path,
    identity: &'a str,
    /// Claim that was recorded; null if claims were taken back.
    claim: Option<&'a Claim>,
    withdrawn: usize,
}

impl<'a> Document<'a> {
    /// Builds the document of what was done in `file`: a claim was recorded, or so many were taken back.
    pub(super) const fn of(
        file: &'a Path,
        identity: &'a str,
        claim: Option<&'a Claim>,
        withdrawn: usize,
    ) -> Self {
        Self { schema: "plumb/policy-claim/1", file, identity, claim, withdrawn }
    }
}

pub(super) fn run(arguments: &ClaimArguments) -> anyhow::Result<Exit> {
    let mut host = Host::new(&arguments.shared)?;
    let file = arguments.shared.claims.as_path();
    if file == Path::new(CLAIMS) {
        host.need_root("give a word for this machine")?;
    }
    if arguments.withdraw {
        return withdraw(&host, arguments, file);
    }
    let given = give(&mut host, arguments)?;
    let claim = &given.claim;
    print(arguments.shared.json, &Document::of(file, &claim.identity, Some(claim), 0), || {
        let (file, name) = (file.display(), &given.name);
        format!(
            "{name}: by the word of {} its cache survives a power cut, until {} ({file})\n\
             `plumb policy plan protected {name}` shows what would be changed by it.\n",
            printable(&claim.who),
            claim.until
        )
    })?;
    if let Some(doubt) = given.doubt {
        terminal::say(&format!("plumb: it is recorded, but {doubt}"));
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
            return Err(
                Refusal::new(Exit::Usage, format!("{option} is empty: a claim says who and why")).into()
            );
        }
    }
    Ok(Claim { identity, who: who.clone(), until, reason: reason.clone() })
}

fn withdraw(host: &Host, arguments: &ClaimArguments, file: &Path) -> anyhow::Result<Exit> {
    let known = host.reader()?.one(&arguments.device).ok().and_then(|view| view.identity);
    let identity = known.unwrap_or_else(|| arguments.device.clone());
    let withdrawn = claims::withdraw(file, &identity).map_err(|error| refusal(error.into()))?;
    if withdrawn == 0 {
        let message = format!("{} holds no claim for {identity}: nothing was taken back", file.display());
        return Err(Refusal::new(Exit::Usage, message).into());
    }
    let document = Document::of(file, &identity, None, withdrawn);
    print(arguments.shared.json, &document, || format!("{identity}: taken back ({})\n", file.display()))?;
    Ok(Exit::Done)
}
