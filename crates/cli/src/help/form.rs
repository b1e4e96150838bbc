//! Definition of the command line with help, in one of two forms.

use clap::{Arg, Command, CommandFactory as _};

use super::pages::{PAGES, Page};
use crate::arguments::Arguments;

/// Form of the help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// `-h`: the essential options in one list.
    Screen,
    /// `--help` and manual pages: all options, grouped by topic.
    Whole,
}

impl Form {
    /// Returns the form that the typed words request.
    pub(crate) fn typed(words: &[String]) -> Self {
        if words.iter().any(|word| word == "-h") { Self::Screen } else { Self::Whole }
    }
}

/// Returns the definition of the command line with the help of each command.
pub(crate) fn command(form: Form) -> Command {
    with_help(Arguments::command(), "", form)
}

/// Returns the page of a command, given its words after `plumb`. Hidden commands have none.
pub(super) fn page(command: &str) -> Option<&'static Page> {
    PAGES.pages.iter().find(|page| page.command == command)
}

fn with_help(command: Command, words: &str, form: Form) -> Command {
    let names: Vec<String> = command.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    let command = names.into_iter().fold(command, |command, name| {
        let words = if words.is_empty() { name.clone() } else { format!("{words} {name}") };
        command.mut_subcommand(name, |subcommand| with_help(subcommand, &words, form))
    });
    let Some(page) = page(words) else { return command };
    command
        .mut_args(|argument| page.arrange(argument, form))
        .after_help(page.short())
        .after_long_help(page.long())
}

impl Page {
    /// Assigns an argument to its heading, and hides it from `-h` unless it is essential.
    fn arrange(&'static self, argument: Arg, form: Form) -> Arg {
        let Some(long) = argument.get_long().map(str::to_owned) else {
            // Otherwise a positional argument would get the heading of the options before it.
            return argument.help_heading(None::<&str>);
        };
        let is_named = |names: &[String]| names.contains(&long);
        match form {
            Form::Screen => argument.hide_short_help(!is_named(&self.essential)).help_heading(None::<&str>),
            Form::Whole => {
                match self.groups.iter().chain(&PAGES.groups).find(|(_, options)| is_named(options)) {
                    Some((heading, _)) => argument.help_heading(heading.as_str()),
                    None => argument,
                }
            }
        }
    }

    /// Returns the command line that shows the help of this page's command.
    fn typed(&self) -> String {
        if self.command.is_empty() { "plumb".to_owned() } else { format!("plumb {}", self.command) }
    }

    /// Returns the exit statuses of the command with their meanings.
    pub(super) fn exits(&self) -> impl Iterator<Item = (String, &str)> {
        let all = PAGES.exits.iter().enumerate().map(|(code, meaning)| (code.to_string(), meaning));
        let meanings = all.map(|(code, meaning)| {
            let meaning = self.exits.get(&code).unwrap_or(meaning).as_str();
            (code, meaning)
        });
        meanings.filter(|(_, meaning)| !meaning.is_empty())
    }

    /// Returns the text at the end of `-h`.
    fn short(&self) -> String {
        let example = self.examples.first().map_or_else(String::new, |example| {
            format!("Example: {}\n  {}\n\n", example.purpose, example.line)
        });
        format!("{example}All options and examples: {} --help", self.typed())
    }

    /// Returns the text at the end of `--help`.
    fn long(&self) -> String {
        let mut parts = Vec::new();
        if !self.examples.is_empty() {
            let examples = self.examples.iter();
            let lines = examples.map(|example| format!("  # {}\n  {}", example.purpose, example.line));
            parts.push(format!("Examples:\n{}", lines.collect::<Vec<_>>().join("\n")));
        }
        parts.extend(self.notes().map(str::to_owned));
        let exits: Vec<String> = self.exits().map(|(code, meaning)| format!("{code} {meaning}")).collect();
        parts.push(format!("Exit status: {}.", exits.join("; ")));
        parts.join("\n\n")
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use plumb_dialect::native::split;

    use super::*;

    /// Calls `look` with each visible command and its words.
    fn each(command: &Command, words: &str, look: &mut dyn FnMut(&Command, &str)) {
        look(command, words);
        for subcommand in command.get_subcommands().filter(|command| !command.is_hide_set()) {
            let name = subcommand.get_name();
            let words = if words.is_empty() { name.to_owned() } else { format!("{words} {name}") };
            each(subcommand, &words, look);
        }
    }

    #[test]
    fn every_command_has_a_page_and_every_page_a_command() {
        let mut found = Vec::new();
        each(&Arguments::command(), "", &mut |command, words| {
            let page = page(words).unwrap_or_else(|| panic!("`{words}` has no page"));
            let longs: Vec<&str> = command.get_arguments().filter_map(Arg::get_long).collect();
            for long in page.essential.iter().chain(page.groups.values().flatten()) {
                let is_global = long == "format" && words.contains(' ');
                assert!(longs.contains(&long.as_str()) || is_global, "`{words}` has no --{long}");
            }
            found.push(words.to_owned());
        });
        for page in &PAGES.pages {
            assert!(found.contains(&page.command), "`{}` is not a command", page.command);
        }
    }

    #[test]
    fn every_command_has_an_example_that_parses() {
        for page in &PAGES.pages {
            assert!(!page.examples.is_empty(), "`{}` has no example", page.command);
            for example in &page.examples {
                let line = &example.line;
                let words = split(line).unwrap_or_else(|| panic!("{line}: a quote has no end"));
                // The part from `>` on is a redirection by the shell.
                let words = words.split(|word| word == ">").next().unwrap_or_default();
                let parsed = Arguments::try_parse_from(words);
                assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
                assert!(
                    line.starts_with(&page.typed()) || page.command.is_empty() || !page.command.contains(' '),
                    "{line}"
                );
                assert!(
                    example.line.len() <= 92 && example.purpose.len() <= 76,
                    "too long: {}",
                    example.line
                );
            }
        }
    }

    #[test]
    fn the_short_help_of_every_command_is_one_screen() {
        let mut root = command(Form::Screen).term_width(80);
        root.build();
        let mut long = Vec::new();
        each(&root, "", &mut |command, words| {
            let help = command.clone().render_help().to_string();
            let lines = help.lines().count();
            let shown = help.lines().filter(|line| !line.starts_with("Usage"));
            let widest = shown.map(str::len).max().unwrap_or(0);
            if lines > 40 || widest > 92 {
                long.push(format!("`{words}`: {lines} lines of {widest}"));
            }
        });
        assert!(long.is_empty(), "{}", long.join("\n"));
    }

    #[test]
    fn the_whole_help_has_every_option_under_a_heading_and_every_example() {
        let mut root = command(Form::Whole);
        root.build();
        each(&root, "", &mut |command, words| {
            let help = command.clone().render_long_help().to_string();
            let visible = command.get_arguments().filter(|argument| !argument.is_hide_set());
            for long in visible.filter_map(Arg::get_long) {
                assert!(help.contains(&format!("--{long}")), "`{words}` does not list --{long}");
            }
            for example in page(words).iter().flat_map(|page| &page.examples) {
                assert!(help.contains(&example.purpose), "`{words}` does not show {}", example.line);
            }
        });
    }

    #[test]
    fn commands_that_programs_call_stand_last() {
        let names: Vec<String> =
            Arguments::command().get_subcommands().map(|command| command.get_name().to_owned()).collect();
        assert_eq!(names[names.len() - 3..], ["agent", "manual", "completions"]);
    }
}
