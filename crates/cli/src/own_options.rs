//! plumb's own options in a command line of another program: the options of `plumb load`.

use clap::{ArgAction, Args, Command, FromArgMatches};

use crate::arguments::running::OwnArguments;
use crate::exit::Exit;
use crate::terminal;

fn known() -> Command {
    OwnArguments::augment_args(Command::new("plumb").no_binary_name(true).disable_help_flag(true))
}

/// Splits `arguments` into plumb's own options and the others, in their order.
///
/// # Errors
/// If an option lacks its value, or contradicts another.
pub(crate) fn take(arguments: &[String]) -> Result<(OwnArguments, Vec<String>), clap::Error> {
    let known = known();
    let (mut own, mut rest) = (Vec::new(), Vec::new());
    let mut typed = arguments.iter().peekable();
    while let Some(argument) = typed.next() {
        let (name, value) =
            argument.split_once('=').map_or((&**argument, None), |(name, value)| (name, Some(value)));
        let long = name.strip_prefix("--");
        let option = known.get_arguments().find(|option| long.is_some() && option.get_long() == long);
        let takes_value = option.is_some_and(|option| !matches!(option.get_action(), ArgAction::SetTrue));
        // A flag with a value belongs to the other program.
        if option.is_none() || (value.is_some() && !takes_value) {
            rest.push(argument.clone());
            continue;
        }
        own.push(argument.clone());
        own.extend(typed.next_if(|_| takes_value && value.is_none()).cloned());
    }
    let matches = known.try_get_matches_from(own)?;
    Ok((OwnArguments::from_arg_matches(&matches)?, rest))
}

/// Prints the usage of the other program and plumb's own options.
pub(crate) fn usage(of_program: &str) -> anyhow::Result<Exit> {
    terminal::print(&format!("{}\n\n{}", of_program.trim_end(), help()))?;
    Ok(Exit::Done)
}

fn help() -> String {
    format!("plumb's own options:\n\n{}\n", known().help_template("{all-args}").render_help())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(list: &[&str]) -> Vec<String> {
        list.iter().map(|one| (*one).to_owned()).collect()
    }

    #[test]
    fn own_options_are_picked_out_wherever_they_stand() {
        let typed =
            strings(&["-w100", "--overwrite", "--destroy", "S1", "-c1G", "--destroy=S2", "x", "--out=d"]);
        let (own, rest) = take(&typed).unwrap();
        assert_eq!(rest, strings(&["-w100", "-c1G", "x"]));
        assert!(own.overwrite && own.printed.format.is_none());
        assert_eq!(own.destroy, strings(&["S1", "S2"]));
        assert_eq!(own.recording.out, Some("d".into()));
        // An option with a value belongs to fio.
        assert_eq!(take(&strings(&["--overwrite=1"])).unwrap().1, strings(&["--overwrite=1"]));
        assert!(take(&strings(&["--destroy"])).is_err());
        assert!(take(&strings(&["--no-record", "--out", "d"])).is_err());
    }

    #[test]
    fn the_help_names_every_own_option() {
        let help = help();
        for option in known().get_arguments() {
            let long = format!("--{}", option.get_long().unwrap());
            assert!(help.contains(&long), "{long} is not in:\n{help}");
        }
    }
}
