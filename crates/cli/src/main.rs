//! The `plumb` binary: parses the arguments, runs a command, and ends with its exit code. Leftovers of killed
//! processes are restored or reported before the command runs.
//!
//! A command converts its arguments, calls the library crates, and prints a document of `plumb_report`.

mod arguments;
mod command;
mod exit;
mod files;
mod help;
mod leftovers;
mod own_options;
mod setting_machine;
mod stop;
mod strictness;
mod surroundings;
mod terminal;
mod traces;
mod unknown;

use std::process::ExitCode;

use arguments::{Command, Effect};
use exit::Exit;

fn main() -> ExitCode {
    run().unwrap_or_else(|failure| exit::say(&failure)).into()
}

fn run() -> anyhow::Result<Exit> {
    plumb_fleet::work::end_with_agent();
    stop::outlive_size_limit()?;
    let command = unknown::parse()?.command;
    let effect = command.effect();
    match effect {
        Effect::Changes => leftovers::put_back_runs(),
        Effect::Reads => leftovers::tell_of_runs(),
        Effect::Own => {}
    }
    // A command that removes leftovers of servers reports them itself, so only the rest is reported
    // afterwards.
    let (tells, clears_up) = (effect != Effect::Own, command.clears_up_after_servers());
    if tells && !clears_up {
        leftovers::tell_of_servers();
    }
    let ended = run_command(command);
    if tells && clears_up {
        leftovers::tell_of_servers();
    }
    ended
}

fn run_command(command: Command) -> anyhow::Result<Exit> {
    match command {
        Command::Check(check) => command::check::run(check),
        Command::Survey(survey) => command::survey::run(&survey),
        Command::Drive(drive) => command::drive::run(&drive),
        Command::Cache(cache) => command::cache::run(&cache),
        Command::Policy(policy) => command::policy::run(&policy),
        Command::Prove(prove) => command::prove::run(prove),
        Command::Fleet(fleet) => command::fleet::run(&fleet),
        Command::Agent(agent) => command::agent::run(&agent),
        Command::Report(report) => command::report::run(&report),
        Command::Explain { rule } => command::explain::run(rule.as_deref()),
        Command::Restore(restore) => command::restore::run(&restore),
        Command::Load(load) => command::load::run(&load),
        Command::Compare(compare) => command::compare::run(&compare),
        Command::Study(study) => command::study::run(&study),
        Command::Observe(observe) => command::observe::run(&observe),
        Command::Diskspd(typed) => command::diskspd::run(&typed.arguments),
        Command::Sqlio(typed) => command::sqlio::run(&typed.arguments),
        Command::Fio(typed) => command::fio::run(&typed.arguments),
        Command::Completions { shell, names } => help::completions(shell, names),
        Command::Manual { directory, writing } => help::manual(&directory, writing),
    }
}
