//! Command line of fio: its own options, job options, and job files.
//!
//! `--name` begins a job. Options before the first `--name`, or after `--name=global`, apply to all later
//! jobs, including those of job files. The value of an option is in the same argument or in the next one.

use plumb_text::nearest;

use super::invocation::{Format, Output};
use super::job_file;
use super::option_table::{self, Fate, KnownOption};
use super::section::{Section, Sections, Setting};
use super::surroundings::Surroundings;
use crate::{Error, Machine};

/// Parsed command line.
#[derive(Debug)]
pub(super) struct TypedLine {
    /// Output options.
    pub(super) output: Output,
    /// True if writes are forbidden.
    pub(super) read_only: bool,
    /// Global settings.
    pub(super) global: Vec<Setting>,
    /// Sections in order.
    pub(super) sections: Vec<Section>,
    /// Notes for the user.
    pub(super) notes: Vec<String>,
}

/// Parses the command line and the job files that it names.
///
/// # Errors
/// Names the argument or line.
pub(super) fn read(
    arguments: &[String],
    machine: &Machine,
    surroundings: &Surroundings<'_>,
) -> Result<TypedLine, Error> {
    let mut reader = Reader::new(asked_sections(arguments));
    let mut rest = arguments.iter();
    let mut files = Vec::new();
    while let Some(argument) = rest.next() {
        match argument.strip_prefix("--").or_else(|| argument.strip_prefix('-').filter(|a| !a.is_empty())) {
            Some("") => files.extend(rest.by_ref()),
            Some(option) => reader.option(argument, option, &mut rest)?,
            None => files.push(argument),
        }
    }
    for file in files {
        job_file::read(file, &mut reader.sections, machine, surroundings)?;
    }
    reader.finish()
}

/// Returns the sections selected by `--section`, anywhere on the command line.
fn asked_sections(arguments: &[String]) -> Vec<String> {
    let mut asked = Vec::new();
    for (index, argument) in arguments.iter().enumerate() {
        match argument.strip_prefix("--section") {
            Some("") => asked.extend(arguments.get(index + 1).cloned()),
            Some(value) => asked.extend(value.strip_prefix('=').map(str::to_owned)),
            None => {}
        }
    }
    asked
}

struct Reader {
    output: Output,
    read_only: bool,
    sections: Sections,
    notes: Vec<String>,
}

impl Reader {
    fn new(only: Vec<String>) -> Self {
        let formats = vec![Format::Normal];
        let output = Output { formats, file: None, parse_only: false, show_command: false, progress: None };
        Self { output, read_only: false, sections: Sections::only(only), notes: Vec::new() }
    }

    fn option<'a>(
        &mut self,
        argument: &str,
        option: &str,
        rest: &mut impl Iterator<Item = &'a String>,
    ) -> Result<(), Error> {
        let (name, value) = match option.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (option, None),
        };
        if let Some(own) = option_table::of_command_line(&format!("--{name}")) {
            return self.own(own, value, argument, rest);
        }
        if name == "name" {
            let value = value.or_else(|| rest.next().cloned()).filter(|value| !value.is_empty());
            let value =
                value.ok_or_else(|| Error::new(argument, "name needs a value").remedy("--name=job"))?;
            self.sections.begin(&value, format!("--name={value}"));
            return Ok(());
        }
        let known = option_table::find(name, argument).map_err(|error| suggesting_own(name, error))?;
        let value = match value {
            None if !known.stands_alone => rest.next().cloned(),
            value => value,
        };
        let place = value.as_ref().map_or_else(|| format!("--{name}"), |value| format!("--{name}={value}"));
        self.sections.set(job_file::setting(name, value, place)?);
        Ok(())
    }

    fn own<'a>(
        &mut self,
        own: KnownOption,
        value: Option<String>,
        argument: &str,
        rest: &mut impl Iterator<Item = &'a String>,
    ) -> Result<(), Error> {
        let name = own.name;
        if let Fate::Refused { why, remedy, .. } = own.fate {
            return Err(Error::new(argument, format!("{name}: {why}")).remedy(remedy));
        }
        let value = if own.takes_value { value.or_else(|| rest.next().cloned()) } else { value };
        match own.fate {
            Fate::NoEffect { why } => {
                self.notes.push(format!("{name} has no effect: {why}"));
                Ok(())
            }
            _ if own.takes_value && value.is_none() => {
                Err(Error::new(argument, format!("{name} needs a value")))
            }
            _ => self.works(name, &value.unwrap_or_default(), argument),
        }
    }

    fn works(&mut self, name: &str, value: &str, argument: &str) -> Result<(), Error> {
        match name {
            "--output" => self.output.file = Some(value.to_owned()),
            "--output-format" => self.output.formats = formats(value, argument)?,
            "--eta" => {
                self.output.progress = match value {
                    "always" => Some(true),
                    "never" => Some(false),
                    "auto" => None,
                    _ => {
                        return Err(Error::new(argument, "--eta is neither always, never nor auto"));
                    }
                }
            }
            "--parse-only" => self.output.parse_only = true,
            "--showcmd" => self.output.show_command = true,
            "--readonly" => self.read_only = true,
            // Sections were collected before.
            _ => {}
        }
        Ok(())
    }

    fn finish(mut self) -> Result<TypedLine, Error> {
        let left_out = std::mem::take(&mut self.sections.left_out);
        let (global, sections) = self.sections.finish();
        if sections.is_empty() && !left_out.is_empty() {
            return Err(Error::new("--section", "no section has this name")
                .remedy(format!("the sections are {}", left_out.join(", "))));
        }
        if sections.is_empty() {
            return Err(Error::new("the command line", "no job is defined")
                .remedy("name a job file, or begin with --name=job --rw=randread --size=1g"));
        }
        let Self { output, read_only, notes, .. } = Self { sections: Sections::default(), ..self };
        Ok(TypedLine { output, read_only, global, sections, notes })
    }
}

/// Adds a suggestion to the error of an unknown option, if an option of the command line has a similar name.
fn suggesting_own(name: &str, error: Error) -> Error {
    match nearest(&format!("--{name}"), option_table::all_of_command_line()) {
        Some(near) => error.remedy(format!("did you mean `{near}`?")),
        None => error,
    }
}

fn formats(value: &str, argument: &str) -> Result<Vec<Format>, Error> {
    let format = |name: &str| match name.trim() {
        "normal" => Ok(Format::Normal),
        "json" => Ok(Format::Json),
        "json+" => Ok(Format::JsonPlus),
        name => Err(Error::new(argument, format!("the output format `{name}` is not supported"))
            .remedy("use --output-format=normal, json or json+")),
    };
    value.split(',').map(format).collect()
}
