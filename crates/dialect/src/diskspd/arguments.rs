//! Parsing of a command line: switches, then targets. The block size is read first, as other sizes may refer
//! to it. Only some switches may accompany a profile file.

use std::io;

use super::profile::{Profile, Target};
use super::switch::{self, Draft};
use super::{Command, Invocation, overrides, templates, xml_read};
use crate::error::Error;
use crate::machine::Machine;

/// Parses a command line without the program's name. `read_file` returns the text of a profile file.
///
/// # Errors
/// The argument that is invalid or in conflict with another, and the reason.
pub fn parse(
    arguments: &[String],
    machine: &Machine,
    read_file: &dyn Fn(&str) -> io::Result<String>,
) -> Result<Command, Error> {
    let (switches, names) = split(arguments)?;
    if switches.iter().any(|typed| typed == "-?") {
        return Ok(Command::Usage);
    }
    for name in names {
        templates::check_name(name)?;
    }
    let (overriding, others): (Vec<&str>, Vec<&str>) =
        switches.iter().map(String::as_str).partition(|typed| overrides::is_one(typed));
    let files: Vec<&str> = others.iter().copied().filter(|typed| typed.starts_with("-X")).collect();
    let (mut profile, source) = match files[..] {
        [] => (of_switches(&others, names)?, None),
        [typed] => {
            if let Some(other) = others.iter().find(|other| **other != typed) {
                return Err(Error::new(*other, format!("{other} cannot stand beside a profile, {typed}"))
                    .remedy("only -W -d -C -R -v -z -: and targets for templates can"));
            }
            (of_file(typed, names, read_file)?, typed.get(2..))
        }
        [_, second, ..] => return Err(Error::new(second, "a second profile: expected one -X")),
    };
    let profile_only = overrides::apply(&overriding, &mut profile, machine)?;
    profile.validate(source, !profile_only)?;
    Ok(Command::Run(Invocation { profile, profile_only }))
}

/// Splits arguments into switches and targets.
fn split(arguments: &[String]) -> Result<(&[String], &[String]), Error> {
    let is_switch = |argument: &String| argument.starts_with('-');
    let end = arguments.iter().position(|argument| !is_switch(argument)).unwrap_or(arguments.len());
    let (switches, targets) = arguments.split_at(end);
    match targets.iter().find(|argument| is_switch(argument)) {
        None => Ok((switches, targets)),
        Some(late) => {
            let problem = format!("{late} comes after the target '{}'", targets[0]);
            Err(Error::new(late, problem)
                .remedy("switches come before targets, and a switch and its value are one argument: -b4k"))
        }
    }
}

fn of_switches(switches: &[&str], names: &[String]) -> Result<Profile, Error> {
    let mut block = Target::BLOCK;
    for typed in switches {
        if let Some(value) = typed.strip_prefix("-b") {
            block = switch::block(typed, value)?;
        }
    }
    let mut draft = Draft::new(block);
    for typed in switches {
        draft.take(typed)?;
    }
    if names.is_empty() {
        return Err(
            Error::new("targets", "none named").remedy("end with a file, or a disk as #N or /dev/NAME")
        );
    }
    draft.finish(names)
}

fn of_file(
    typed: &str,
    names: &[String],
    read_file: &dyn Fn(&str) -> io::Result<String>,
) -> Result<Profile, Error> {
    let path = &typed[2..];
    if path.is_empty() {
        return Err(
            Error::new(typed, "no file given").remedy("-X and the file are one argument: -Xprofile.xml")
        );
    }
    let text =
        read_file(path).map_err(|error| Error::new(typed, format!("'{path}' cannot be read: {error}")))?;
    let mut profile = xml_read::profile(&text, path)?;
    templates::fill_in(&mut profile, names, path)?;
    Ok(profile)
}
