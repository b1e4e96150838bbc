//! SQLIO's command line. Defaults as far as known: `-kR -t1 -s30 -f64 -b2 -BN`, one I/O at a time.

use std::io;

use plumb_workload::Affinity;

use super::{Buffering, File, Invocation, Pattern, param_file};
use crate::diskspd::{self, number_within};
use crate::error::Error;
use crate::machine::Machine;
use crate::processors;

/// Parses a command line without the program's name. `read_file` returns the text of a parameter file.
///
/// # Errors
/// The argument that is invalid or in conflict with another, and the reason.
pub fn parse(
    arguments: &[String],
    machine: &Machine,
    read_file: &dyn Fn(&str) -> io::Result<String>,
) -> Result<Invocation, Error> {
    let mut draft = Draft::default();
    for typed in arguments {
        match typed.strip_prefix('-') {
            Some(switch) => draft.take(typed, switch, read_file)?,
            None => {
                diskspd::check_name(typed)?;
                draft.names.push(typed.clone());
            }
        }
    }
    let invocation = draft.finish()?;
    for file in &invocation.files {
        let (Affinity::Each(numbers) | Affinity::Shared(numbers)) = &file.affinity else { continue };
        processors::check(numbers, machine).map_err(|problem| Error::new(&file.name, problem))?;
    }
    Ok(invocation)
}

struct Draft {
    run: Invocation,
    names: Vec<String>,
    threads: u32,
    affinity: Affinity,
}

impl Default for Draft {
    fn default() -> Self {
        let run = Invocation {
            writes: false,
            seconds: 30,
            block: 2 << 10,
            pattern: Pattern::Stripe(64),
            outstanding: 0,
            start_block: 0,
            buffering: Buffering::None,
            latency: false,
            ios_per_run: None,
            param_file: None,
            files: Vec::new(),
        };
        Self { run, names: Vec::new(), threads: 1, affinity: Affinity::Any }
    }
}

impl Draft {
    fn take(
        &mut self,
        typed: &str,
        switch: &str,
        read_file: &dyn Fn(&str) -> io::Result<String>,
    ) -> Result<(), Error> {
        let wrong = |problem: String| Error::new(typed, problem);
        let mut characters = switch.chars();
        let letter = characters.next();
        let value = characters.as_str();
        let run = &mut self.run;
        match letter {
            Some('k') => run.writes = one_of(value, &[("R", false), ("W", true)]).map_err(wrong)?,
            Some('s') => run.seconds = number_within(value, 1, u32::MAX).map_err(wrong)?,
            Some('t') => self.threads = number_within(value, 1, 1024).map_err(wrong)?,
            Some('o') => run.outstanding = number_within(value, 0, 32_768).map_err(wrong)?,
            Some('b') => run.block = u64::from(number_within(value, 1, 1 << 20).map_err(wrong)?) << 10,
            Some('S') => run.start_block = u64::from(number_within(value, 0, u32::MAX).map_err(wrong)?),
            Some('f') => run.pattern = pattern(value).map_err(wrong)?,
            Some('B') => run.buffering = buffering(value).map_err(wrong)?,
            Some('L') => {
                run.latency =
                    one_of(value, &[("S", true), ("P", true), ("Si", true), ("Pi", true)]).map_err(wrong)?;
            }
            Some('p') => {
                let number =
                    number_within(value.strip_prefix('I').unwrap_or(value), 0, 4095).map_err(wrong)?;
                self.affinity = Affinity::Each(vec![number]);
            }
            Some('a') => self.affinity = affinity(value).map_err(wrong)?,
            Some('R') => self.names.extend(drives(value).map_err(wrong)?),
            Some('F') => self.take_param_file(typed, value, read_file)?,
            Some('d') => {
                return Err(wrong(format!("'{value}': drive letters mean nothing on Linux"))
                    .remedy("name paths, or disks as #N or /dev/NAME"));
            }
            Some('i') => run.ios_per_run = Some(number_within(value, 1, u32::MAX).map_err(wrong)?),
            Some('m') => {
                return Err(wrong(format!(
                    "'{value}': I/O of several blocks at once (copy, scatter) is not known here"
                ))
                .remedy("-b sets the size of an I/O"));
            }
            _ => return Err(wrong(format!("'{typed}' is not a switch of SQLIO")).remedy("-? lists them")),
        }
        Ok(())
    }

    fn take_param_file(
        &mut self,
        typed: &str,
        path: &str,
        read_file: &dyn Fn(&str) -> io::Result<String>,
    ) -> Result<(), Error> {
        if path.is_empty() {
            return Err(
                Error::new(typed, "no file given").remedy("-F and the file are one argument: -Fparam.txt")
            );
        }
        if self.run.param_file.is_some() {
            return Err(Error::new(typed, format!("'{path}' is a second parameter file")));
        }
        let unreadable = |error| Error::new(typed, format!("'{path}' cannot be read: {error}"));
        self.run.files = param_file::parse(&read_file(path).map_err(unreadable)?, path)?;
        self.run.param_file = Some(path.to_owned());
        Ok(())
    }

    fn finish(self) -> Result<Invocation, Error> {
        let Self { mut run, names, threads, affinity } = self;
        if let (Some(file), Some(name)) = (&run.param_file, names.first()) {
            return Err(Error::new(name, format!("the parameter file '{file}' names the files")));
        }
        run.files.extend(names.into_iter().map(|name| File {
            name,
            threads,
            affinity: affinity.clone(),
            size: None,
        }));
        if let (Some(count), Pattern::Stripe(_)) = (run.ios_per_run, run.pattern) {
            return Err(Error::new(
                format!("-i{count}"),
                format!("runs of '{count}' I/Os over stripes are not known here"),
            )
            .remedy("choose -frandom or -fsequential, where runs make no difference"));
        }
        if run.files.is_empty() {
            return Err(
                Error::new("targets", "none named").remedy("end with a file, or give a parameter file, -F")
            );
        }
        Ok(run)
    }
}

fn pattern(value: &str) -> Result<Pattern, String> {
    match value {
        "random" => Ok(Pattern::Random),
        "sequential" => Ok(Pattern::Sequential),
        "stripe" => Ok(Pattern::Stripe(64)),
        _ => number_within(value, 1, u32::MAX).map(Pattern::Stripe).map_err(|_| {
            format!("'{value}': expected random, sequential, or blocks from one I/O to the next")
        }),
    }
}

fn buffering(value: &str) -> Result<Buffering, String> {
    one_of(
        value,
        &[
            ("N", Buffering::None),
            ("Y", Buffering::All),
            ("H", Buffering::Hardware),
            ("S", Buffering::Software),
        ],
    )
}

/// Parses `-a[R[I]]<mask>`. R pins each thread to one processor.
fn affinity(value: &str) -> Result<Affinity, String> {
    let (each, digits) = match value.strip_prefix('R') {
        Some(digits) => (true, digits.strip_prefix('I').unwrap_or(digits)),
        None => (false, value),
    };
    Ok(match (mask(digits)?, each) {
        (processors, _) if processors.is_empty() => Affinity::Any,
        (processors, true) => Affinity::Each(processors),
        (processors, false) => Affinity::Shared(processors),
    })
}

/// Parses a hexadecimal mask of processors, with or without `0x`. Empty for 0.
pub(super) fn mask(text: &str) -> Result<Vec<u32>, String> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
    let mask = u64::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+'));
    mask.map(processors::of_mask)
        .ok_or_else(|| format!("'{text}' is not a mask: expected hexadecimal of at most 64 bits"))
}

fn drives(value: &str) -> Result<Vec<String>, String> {
    let number = |part: &str| match number_within(part, 0, u32::MAX) {
        Ok(number) => Ok(format!("#{number}")),
        Err(_) => Err(format!("'{part}' is not a number of a drive; letters mean nothing on Linux")),
    };
    value.split(',').map(number).collect()
}

fn one_of<T: Copy>(value: &str, choices: &[(&str, T)]) -> Result<T, String> {
    let found = choices.iter().find(|(choice, _)| *choice == value);
    let expected = || choices.iter().map(|(choice, _)| *choice).collect::<Vec<_>>().join(", ");
    found.map(|(_, meant)| *meant).ok_or_else(|| format!("'{value}': expected {}", expected()))
}

#[cfg(test)]
mod tests {
    #[test]
    fn bits_are_processors() {
        assert_eq!(super::mask("0x5").unwrap(), [0, 2]);
        assert_eq!(super::mask("F").unwrap(), [0, 1, 2, 3]);
        assert!(super::mask("0x0").unwrap().is_empty());
        for text in ["", "0x", "xyz", "+1", "0x10000000000000000"] {
            assert!(super::mask(text).is_err(), "{text}");
        }
    }
}
