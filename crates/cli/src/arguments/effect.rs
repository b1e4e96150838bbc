//! Effects of command lines on the machine, which determine what happens to leftovers of killed processes
//! before a command runs.

use super::Command;
use super::cache::CacheCommand;
use super::drive::DriveCommand;
use super::policy::PolicyCommand;

/// Effect of a command on the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// The command writes to devices or files under test, traces, or changes settings. Leftovers would
    /// distort it, so they are restored first.
    Changes,
    /// The command reads, or writes only a result.
    Reads,
    /// The command handles leftovers itself, or is part of a command that did.
    Own,
}

impl Command {
    /// Returns the effect of this command line.
    pub(crate) fn effect(&self) -> Effect {
        let reads = match self {
            Self::Restore(_) | Self::Agent(_) | Self::Completions { names: Some(_), .. } => {
                return Effect::Own;
            }
            Self::Prove(prove) if prove.is_part_of_another() => return Effect::Own,
            Self::Survey(_)
            | Self::Fleet(_)
            | Self::Report(_)
            | Self::Explain { .. }
            | Self::Completions { .. }
            | Self::Manual { .. } => true,
            Self::Check(_) => false,
            Self::Load(load) => load.explain || load.own.show_workload,
            Self::Compare(compare) => compare.reads(),
            Self::Study(study) => study.reads(),
            Self::Observe(observe) => observe.reads(),
            Self::Diskspd(typed) | Self::Sqlio(typed) | Self::Fio(typed) => typed
                .arguments
                .iter()
                .any(|word| ["--show-workload", "--help", "-?"].contains(&word.as_str())),
            Self::Drive(drive) => {
                matches!(
                    drive.command,
                    DriveCommand::List | DriveCommand::Show(_) | DriveCommand::Status { .. }
                )
            }
            Self::Cache(cache) => matches!(
                cache.command,
                CacheCommand::Status { .. }
                    | CacheCommand::Advise(_)
                    | CacheCommand::Verify { .. }
                    | CacheCommand::Recover { dry_run: true, .. }
            ),
            Self::Policy(policy) => matches!(
                policy.command,
                PolicyCommand::Show(_)
                    | PolicyCommand::Plan(_)
                    | PolicyCommand::Verify(_)
                    | PolicyCommand::Watch(_)
            ),
            Self::Prove(prove) => prove.reads(),
        };
        if reads { Effect::Reads } else { Effect::Changes }
    }

    /// Returns true if the command finds servers by name, and removes leftovers of killed ones.
    pub(crate) fn clears_up_after_servers(&self) -> bool {
        match self {
            Self::Cache(cache) => !matches!(
                cache.command,
                CacheCommand::Serve(_) | CacheCommand::Create(_) | CacheCommand::Advise(_)
            ),
            Self::Drive(drive) => matches!(drive.command, DriveCommand::Detach(_)),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::arguments::Arguments;

    #[test]
    fn only_command_lines_that_change_something_put_back_what_is_left() {
        let effect = |typed: &str| {
            let words = std::iter::once("plumb").chain(typed.split(' '));
            Arguments::try_parse_from(words)
                .unwrap_or_else(|error| panic!("{typed}: {error}"))
                .command
                .effect()
        };
        for typed in [
            "check",
            "load x --size 1M --write 100",
            "load --profile mail x",
            "compare --factor buffering=cached,direct x",
            "study --on /tmp",
            "observe vda",
            "diskspd -c1M x",
            "sqlio x",
            "fio --name=x",
            "drive serve null",
            "drive cut x",
            "drive detach x",
            "cache serve x",
            "cache create --name x --backing a --log b --size 1G",
            "cache recover x",
            "policy apply x",
            "policy rollback x",
            "prove app --subject files:rename",
            "prove trace -- true",
        ] {
            assert_eq!(effect(typed), Effect::Changes, "{typed}");
        }
        for typed in [
            "survey",
            "explain",
            "report",
            "completions bash",
            "manual /tmp",
            "load --explain",
            "load x --show-workload",
            "compare x --a=--direct --b=--direct --show-workload",
            "compare a b --against c d",
            "study",
            "observe --from x",
            "observe compare a b",
            "fio --show-workload --name=x",
            "diskspd --help",
            "drive list",
            "drive status",
            "cache status",
            "cache verify x",
            "cache recover x --dry-run",
            "policy show",
            "policy verify x",
            "prove verify --witness x y",
        ] {
            assert_eq!(effect(typed), Effect::Reads, "{typed}");
        }
        assert_eq!(effect("restore"), Effect::Own);
    }
}
