//! Factors by name: what each level of one changes in the words of a load.

use std::str::FromStr;

use plumb_dialect::native::Words;

use crate::exit::{Exit, Refusal, usage};

/// A factor with its levels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Factor {
    kind: Kind,
    levels: Vec<String>,
}

/// What a factor changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// How targets are opened.
    Buffering,
    /// Which simulated drive is the target.
    Drive,
    /// The write cache of a simulated drive, and whether flushes reach it.
    Policy,
}

/// The names of the factors, each with the levels that it has; of one without, they are names of models.
const KINDS: [(&str, Kind, &[&str]); 3] = [
    ("buffering", Kind::Buffering, &["cached", "direct", "dsync"]),
    ("drive", Kind::Drive, &[]),
    ("policy", Kind::Policy, &["off", "on", "protected"]),
];

impl FromStr for Factor {
    type Err = String;

    fn from_str(typed: &str) -> Result<Self, String> {
        let expected =
            "expected buffering=cached,direct,dsync or drive=MODEL,MODEL or policy=off,on,protected";
        let (name, levels) = typed.split_once('=').ok_or(expected)?;
        let (_, kind, known) = KINDS.iter().find(|(known, ..)| *known == name).ok_or(expected)?;
        let levels: Vec<String> = levels.split(',').map(|level| level.trim().to_owned()).collect();
        if let Some(other) = levels.iter().find(|level| !known.is_empty() && !known.contains(&level.as_str()))
        {
            return Err(format!("`{other}` is no level of {name}: expected {}", known.join(", ")));
        }
        if levels.len() < 2 || levels.iter().any(String::is_empty) {
            return Err(format!("`{typed}` has no two levels: type them with a comma between"));
        }
        Ok(Self { kind: *kind, levels })
    }
}

impl Factor {
    /// Its name.
    pub(super) fn name(&self) -> &'static str {
        KINDS.iter().find(|(_, kind, _)| *kind == self.kind).map_or("", |(name, ..)| name)
    }

    /// Each level with its words, over those that all have.
    ///
    /// # Errors
    /// If the factor is none of such targets.
    pub(super) fn levels(&self, common: &Words) -> Result<Vec<(String, Words)>, Refusal> {
        let level = |(number, level): (usize, &String)| {
            let words = Words::of_arguments(self.arguments(level, &common.targets())?).map_err(usage)?;
            let again = self.levels[..number].iter().filter(|earlier| *earlier == level).count();
            let name = if again == 0 { level.clone() } else { format!("{level} ({})", again + 1) };
            Ok((name, words.within(common)))
        };
        self.levels.iter().enumerate().map(level).collect()
    }

    /// The words of a level, where the targets are these.
    fn arguments(&self, level: &str, targets: &[String]) -> Result<Vec<String>, Refusal> {
        let words = |words: &str| words.split(' ').map(str::to_owned).collect();
        Ok(match (self.kind, level) {
            (Kind::Buffering, "cached") => words("--cached"),
            (Kind::Buffering, "dsync") => words("--direct --dsync"),
            (Kind::Buffering, _) => words("--direct"),
            (Kind::Drive, model) => vec![format!("sim:{model}")],
            (Kind::Policy, level) => {
                targets.iter().map(|target| set(target, level)).collect::<Result<_, _>>()?
            }
        })
    }
}

/// A simulated drive with its write cache as `level` says.
fn set(target: &str, level: &str) -> Result<String, Refusal> {
    if !target.starts_with("sim:") {
        let problem = format!(
            "policy={level}: {target} is no simulated drive, and this version switches no other while it compares; set it with \
             `plumb policy`, record runs with `plumb load`, and compare those with --against"
        );
        return Err(Refusal::new(Exit::Usage, problem));
    }
    let options = match level {
        "off" => "wce=off",
        "on" => "wce=on",
        // The cache is on, and the driver keeps flushes from the drive.
        _ => "wce=on&behaviour.driver_drops_flush=true",
    };
    Ok(format!("{target}{}{options}", if target.contains('?') { '&' } else { '?' }))
}
