//! The `plumb` binary: parses the arguments, runs a command, ends with its exit code.

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
    let command = unknown::parse()?.command;
    match command.effect() {
        Effect::Changes => leftovers::put_back_runs(),
        Effect::Reads => leftovers::tell(),
        Effect::Own => {}
    }
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
