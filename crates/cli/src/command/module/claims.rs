//! `claim` of `plumb_policy`: an administrator's word that the caches of the chosen disks survive a power cut.

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::parameters::{Parameters, required};
use super::policy::Policy;
use super::{Failure, Task, entries, text};
use crate::arguments::policy::until;

/// What is claimed.
pub(super) struct Claim {
    by: String,
    until: String,
    reason: String,
}

impl Claim {
    pub(super) fn of(mut given: Parameters) -> Result<Self, Failure> {
        let mut text = |name| required(name, given.text(name)?);
        let claim = Self { by: text("by")?, until: text("until")?, reason: text("reason")? };
        given.end()?;
        Ok(claim)
    }

    /// Whether it is to be recorded for a disk: that has none, or another one that is no better.
    fn is_wanting(&self, protection: &Value) -> bool {
        match text(protection, "rank") {
            "" | "timing-hint" => true,
            "administrators-word" => {
                let said = format!("{} says so: {}", self.by, self.reason);
                // What is no time is left to plumb to judge.
                let end = until(&self.until).map_or_else(|_| self.until.clone(), |end| end.to_string());
                text(protection, "claim") != said || text(protection, "until") != end
            }
            _ => false,
        }
    }
}

impl Task<'_> {
    /// Records the claim for each disk that has none as good, in check mode into a copy of the file; which file that is.
    pub(super) fn claim(&mut self, claim: &Claim, asked: &Policy) -> Result<PathBuf, Failure> {
        if asked.state != "protected" {
            let state = asked.state;
            let message =
                format!("`claim` is what the state protected rests on: with state {state} it means nothing");
            return Err(Failure::new(message));
        }
        let mut words = ["policy", "show", "--json", "--claims"].map(str::to_owned).to_vec();
        words.push(asked.claims.display().to_string());
        words.extend(asked.choice.words());
        let (_, document) = self.program.document(&words, "plumb/policy/1", &[0, 1])?;
        let is_wanting = |disk: &&Value| disk["refusal"].is_null() && claim.is_wanting(&disk["protection"]);
        let wanting: Vec<&str> =
            entries(&document, "devices").filter(is_wanting).map(|disk| text(disk, "name")).collect();
        self.tell("claimed", json!(wanting));
        let mut file = asked.claims.clone();
        if self.check_mode && !wanting.is_empty() {
            file = self.directory.join("claims.toml");
            match fs::copy(&asked.claims, &file) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(Failure::new(format!("{}: {error}", asked.claims.display())));
                }
                _ => {}
            }
        }
        let place = file.display().to_string();
        let said = [("by", &claim.by), ("until", &claim.until), ("reason", &claim.reason)];
        let [by, until, reason] = said.map(|(name, value)| format!("--{name}={value}"));
        for name in wanting {
            let words = ["policy", "claim", "--json", "--claims", &place, &by, &until, &reason, "--", name];
            self.program.document(&words, "plumb/policy-claim/1", &[0, 1])?;
            self.tell("changed", json!(true));
        }
        Ok(file)
    }
}
