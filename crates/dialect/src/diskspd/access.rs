//! Offsets of I/Os: the switches `-r`, `-rs`, `-rd` and `-s`, which combine in any order.

use super::distribution::Distribution;
use super::profile::Target;
use super::size::{number_within, size};
use crate::error::Error;

/// Offset switches so far, each with its argument.
#[derive(Debug, Default)]
pub(super) struct Access {
    random: Option<(String, u64)>,
    percent: Option<(String, u8)>,
    distribution: Option<(String, Distribution)>,
    stride: Option<(String, Stride)>,
}

#[derive(Debug, Clone, Copy)]
struct Stride {
    length: u64,
    interlocked: bool,
}

impl Access {
    /// Adds `-r...`: `typed` is the argument, `value` the text after `-r`.
    ///
    /// # Errors
    /// Fails if the value is invalid or repeats a switch.
    pub(super) fn add_random(&mut self, typed: &str, value: &str, block: u64) -> Result<(), Error> {
        let wrong = |problem| Error::new(typed, problem);
        if let Some(percent) = value.strip_prefix('s') {
            let percent = number_within(percent, 1, 100).map_err(wrong)? as u8;
            return set_once(&mut self.percent, typed, percent);
        }
        if let Some(distribution) = value.strip_prefix('d') {
            let distribution = Distribution::parse(distribution, block).map_err(wrong)?;
            return set_once(&mut self.distribution, typed, distribution);
        }
        let align = match value {
            "" => block,
            _ => size(value, block).map_err(wrong)?,
        };
        if align == 0 {
            return Err(wrong("'0' is not an alignment: expected at least 1".to_owned()));
        }
        set_once(&mut self.random, typed, align)
    }

    /// Adds `-s...`: `typed` is the argument, `value` the text after `-s`.
    ///
    /// # Errors
    /// Fails if the value is invalid or repeats a switch.
    pub(super) fn add_stride(&mut self, typed: &str, value: &str, block: u64) -> Result<(), Error> {
        let (interlocked, length) = match value.strip_prefix('i') {
            Some(length) => (true, length),
            None => (false, value),
        };
        let length = match length {
            "" => block,
            _ => size(length, block).map_err(|problem| Error::new(typed, problem))?,
        };
        set_once(&mut self.stride, typed, Stride { length, interlocked })
    }

    /// Sets the access of a target.
    ///
    /// # Errors
    /// Fails for both sequential and random access, or a distribution without random access.
    pub(super) fn apply_to(self, target: &mut Target) -> Result<(), Error> {
        let random = self.random.as_ref().map(|(typed, _)| typed);
        let random = random.or(self.percent.as_ref().map(|(typed, _)| typed));
        if let (Some((stride, _)), Some(random)) = (&self.stride, random) {
            return Err(Error::new(stride, format!("sequential I/O conflicts with random I/O, {random}"))
                .remedy("the alignment of random I/O, with -rs too, is given by -r"));
        }
        if let (Some((typed, _)), None) = (&self.distribution, random) {
            return Err(
                Error::new(typed, "a distribution does not apply to sequential I/O").remedy("add -r or -rs")
            );
        }
        if let Some((_, stride)) = self.stride {
            target.alignment = stride.length;
            target.interlocked = stride.interlocked;
            return Ok(());
        }
        let aligned = self.random.map(|(_, align)| align);
        target.random_percent = match (self.percent, aligned) {
            (Some((_, percent)), _) => percent,
            (None, Some(_)) => 100,
            (None, None) => 0,
        };
        target.alignment = aligned.unwrap_or(u64::from(target.block));
        target.distribution = self.distribution.map(|(_, distribution)| distribution);
        Ok(())
    }
}

fn set_once<T>(place: &mut Option<(String, T)>, typed: &str, value: T) -> Result<(), Error> {
    match place {
        Some((earlier, _)) => {
            Err(Error::new(typed, format!("{earlier} already sets this: leave one of them out")))
        }
        None => {
            *place = Some((typed.to_owned(), value));
            Ok(())
        }
    }
}
