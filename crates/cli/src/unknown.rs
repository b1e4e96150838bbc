//! Handling of invalid command lines: options of other programs are answered with plumb's equivalents, and a
//! typing error never leads to the suggestion of a destructive option.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory as _, FromArgMatches as _};
use plumb_dialect::native;

use crate::arguments::Arguments;
use crate::help::{self, Form};
use crate::surroundings::argv;

/// Parses the arguments of this process.
///
/// # Errors
/// Returns the output of clap, which includes help and version.
pub(crate) fn parse() -> Result<Arguments, clap::Error> {
    let typed = argv();
    let parsed = match parsed_by(Arguments::command()) {
        // Reading the help pages takes longer than parsing, so they are read only if help is requested.
        Err(error) if shows_help(error.kind()) => parsed_by(help::command(Form::typed(&typed))),
        parsed => parsed,
    };
    parsed.map_err(|error| explained(error, &typed))
}

fn parsed_by(mut command: Command) -> Result<Arguments, clap::Error> {
    let matches = command.try_get_matches_from_mut(std::env::args_os())?;
    Arguments::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// Returns true if clap answers with help.
fn shows_help(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand)
}

fn explained(mut error: clap::Error, typed: &[String]) -> clap::Error {
    if let Some(ContextValue::String(near)) = error.get(ContextKind::SuggestedArg)
        && !plumb_dialect::may_be_suggested(near)
    {
        error.remove(ContextKind::SuggestedArg);
        // The usage line belongs to the suggestion.
        error.remove(ContextKind::Usage);
    }
    if error.kind() == ErrorKind::UnknownArgument {
        // clap suggests passing the word as a value, but no target begins with dashes.
        error.remove(ContextKind::Suggested);
        if let Some(tip) = other_commands(&error) {
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
        }
    }
    let (ErrorKind::UnknownArgument | ErrorKind::TooManyValues, [_, command, rest @ ..]) =
        (error.kind(), typed)
    else {
        return error;
    };
    let Some(said) = native::in_own_words(command, rest) else { return error };
    let help = format!("For more information, try 'plumb {command} --help'.\n");
    clap::Error::raw(error.kind(), format!("{said}{help}"))
}

/// Returns a tip that names the commands with the unexpected option.
fn other_commands(error: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidArg) else { return None };
    let long = typed.strip_prefix("--")?;
    let has_it = |command: &&clap::Command| {
        command.get_arguments().any(|argument| argument.get_long() == Some(long) && !argument.is_hide_set())
    };
    let root = Arguments::command();
    let names =
        root.get_subcommands().filter(has_it).map(|command| format!("`plumb {}`", command.get_name()));
    let names = names.collect::<Vec<_>>().join(", ");
    (!names.is_empty()).then(|| format!("{typed} is an option of {names}"))
}
