//! Shell completions. The scripts request names that only the machine knows, such as those of caches, with
//! `plumb completions --names caches`.

use clap::builder::PossibleValuesParser;
use clap::{Command, ValueEnum};
use clap_complete::Shell;
use plumb_block::FailureKind;
use plumb_caches::CacheConfig;
use plumb_serve::named::registry;
use plumb_sim::model::Model;
use plumb_state::places;

use super::form::{Form, command};
use crate::arguments::names::Names;
use crate::exit::Exit;
use crate::terminal;

impl Names {
    /// Returns the placeholder in a script where the shell must request the names.
    const fn placeholder(self) -> &'static str {
        match self {
            Self::Profiles => "PLUMB_NAMES_PROFILES",
            Self::Rules => "PLUMB_NAMES_RULES",
            Self::Models => "PLUMB_NAMES_MODELS",
            Self::Subjects => "PLUMB_NAMES_SUBJECTS",
            Self::ProofDrives => "PLUMB_NAMES_PROOF_DRIVES",
            Self::Caches => "PLUMB_NAMES_CACHES",
            Self::Drives => "PLUMB_NAMES_DRIVES",
        }
    }

    fn word(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    fn list(self) -> anyhow::Result<Vec<String>> {
        Ok(match self {
            Self::Profiles => {
                plumb_application::profiles().iter().map(|profile| profile.name.clone()).collect()
            }
            Self::Rules => plumb_report::rules::all().into_iter().map(|rule| rule.id.clone()).collect(),
            Self::Models => Model::all()?.into_iter().map(|model| model.name).collect(),
            Self::Subjects => {
                plumb_prove::subject::SUBJECTS.iter().map(|kind| kind.name.to_owned()).collect()
            }
            Self::ProofDrives => {
                plumb_prove::profile::PROFILES.iter().map(|(name, _)| (*name).to_owned()).collect()
            }
            Self::Caches => CacheConfig::names(&plumb_caches::directory())?,
            Self::Drives => registry::names(&places::run())?,
        })
    }
}

/// Argument that takes a name.
struct Place {
    /// Words of the command after `plumb`.
    command: &'static str,
    /// Long name of the option; empty for the first positional argument.
    option: &'static str,
    names: Names,
}

const fn place(command: &'static str, option: &'static str, names: Names) -> Place {
    Place { command, option, names }
}

const PLACES: [Place; 22] = [
    place("load", "profile", Names::Profiles),
    place("compare", "profile", Names::Profiles),
    place("explain", "", Names::Rules),
    place("drive show", "", Names::Models),
    place("drive serve", "", Names::Models),
    place("drive cut", "", Names::Drives),
    place("drive power-on", "", Names::Drives),
    place("drive status", "", Names::Drives),
    place("drive set", "", Names::Drives),
    place("drive fault", "", Names::Drives),
    place("drive detach", "", Names::Drives),
    place("cache serve", "", Names::Caches),
    place("cache status", "", Names::Caches),
    place("cache mode", "", Names::Caches),
    place("cache tune", "", Names::Caches),
    place("cache drain", "", Names::Caches),
    place("cache grow", "", Names::Caches),
    place("cache replace-leg", "", Names::Caches),
    place("cache stop", "", Names::Caches),
    place("cache detach", "", Names::Caches),
    place("prove app", "subject", Names::Subjects),
    place("prove app", "drive", Names::ProofDrives),
];

/// Prints the names of one kind, one per line, or the completions for a shell.
pub(crate) fn completions(shell: Option<Shell>, names: Option<Names>) -> anyhow::Result<Exit> {
    let text = match (names, shell) {
        (Some(names), _) => names.list()?.iter().map(|name| format!("{name}\n")).collect(),
        (None, Some(shell)) => script(shell),
        (None, None) => return Ok(Exit::Failed(FailureKind::Usage)),
    };
    terminal::print(&text)?;
    Ok(Exit::Done)
}

fn script(shell: Shell) -> String {
    let mut command = PLACES.iter().fold(command(Form::Whole), |command, place| {
        let words: Vec<&str> = place.command.split(' ').collect();
        with_names(command, &words, place)
    });
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "plumb", &mut script);
    let mut script = String::from_utf8_lossy(&script).into_owned();
    for names in Names::value_variants() {
        let placeholder = names.placeholder();
        let asked = format!("plumb completions --names {} 2>/dev/null", names.word());
        script = match shell {
            // zsh evaluates a command in braces, but not a word list in parentheses.
            Shell::Zsh => {
                script.replace(&format!("({placeholder})"), &format!("{{compadd -- ${{(f)\"$({asked})\"}}}}"))
            }
            Shell::Fish => script.replace(&format!("\"{placeholder}\\t''\""), &format!("\"({asked})\"")),
            _ => script.replace(placeholder, &format!("$({asked})")),
        };
    }
    if shell == Shell::Fish {
        script.push_str(&positionals_of_fish());
    }
    script
}

/// Makes a placeholder the only value of an argument.
fn with_names(command: Command, words: &[&str], place: &Place) -> Command {
    let Some((first, rest)) = words.split_first() else {
        let mut is_given = false;
        return command.mut_args(|argument| {
            let is_meant = match place.option {
                "" => argument.is_positional() && !is_given,
                long => argument.get_long() == Some(long),
            };
            is_given |= is_meant;
            let only = || PossibleValuesParser::new([place.names.placeholder()]);
            if is_meant { argument.value_parser(only()) } else { argument }
        });
    };
    command.mut_subcommand(*first, |subcommand| with_names(subcommand, rest, place))
}

/// Returns completions of positional arguments, which clap_complete omits for fish.
fn positionals_of_fish() -> String {
    let positional = PLACES.iter().filter(|place| place.option.is_empty());
    let line = |place: &Place| {
        let seen: String = place
            .command
            .split(' ')
            .map(|word| format!("; and __fish_seen_subcommand_from {word}"))
            .collect();
        let condition = seen.trim_start_matches("; and ");
        let word = place.names.word();
        format!(
            "complete -c plumb -n \"{condition}\" -f -a \"(plumb completions --names {word} 2>/dev/null)\"\n"
        )
    };
    positional.map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shell_asks_plumb_for_every_kind_of_name() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = script(shell);
            assert!(!script.contains("PLUMB_NAMES"), "{shell}: a placeholder is left");
            for names in Names::value_variants() {
                let asked = format!("plumb completions --names {} ", names.word());
                assert!(script.contains(&asked), "{shell} does not ask for {}", names.word());
            }
        }
    }

    #[test]
    fn names_of_the_program_itself_are_there() {
        for (names, known) in [
            (Names::Profiles, "pg-wal"),
            (Names::Rules, "flush-dropped"),
            (Names::Models, "sas-15k"),
            (Names::Subjects, "sqlite"),
            (Names::ProofDrives, "volatile"),
        ] {
            assert!(names.list().unwrap().iter().any(|name| name == known), "{known} is not among {names:?}");
        }
    }
}
