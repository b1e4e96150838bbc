//! The switches that may stand beside a profile file and change it: -W -d -C -R -v -z and -: .
//!
//! Without a profile file they say the same of the only time span.

use super::profile::{Profile, ResultFormat};
use super::size::number;
use super::switch::seconds;
use crate::error::Error;
use crate::machine::Machine;

/// What these switches say; `None`: nothing.
#[derive(Debug, Default)]
pub(super) struct Overrides {
    warmup: Option<u32>,
    duration: Option<u32>,
    cooldown: Option<u32>,
    seed: Option<u32>,
    format: Option<ResultFormat>,
    experiment_flags: Option<u32>,
    verbose: bool,
    verbose_stats: bool,
    /// Print the profile and run nothing.
    pub(super) profile_only: bool,
}

impl Overrides {
    /// Takes `typed` if it is one of these.
    ///
    /// # Errors
    /// If it is, and its value makes no sense.
    pub(super) fn take(&mut self, typed: &str, machine: &Machine) -> Result<bool, Error> {
        let mut characters = typed.chars();
        characters.next();
        let letter = characters.next();
        let value = characters.as_str();
        let wrong = |problem: String| Error::new(typed, problem);
        match letter {
            Some('W') => self.warmup = Some(seconds(value).map_err(wrong)?),
            Some('d') => self.duration = Some(seconds(value).map_err(wrong)?),
            Some('C') => self.cooldown = Some(seconds(value).map_err(wrong)?),
            Some('z') => self.seed = Some(seed(value, machine).map_err(wrong)?),
            Some(':') => self.experiment_flags = Some(whole(value).map_err(wrong)?),
            Some('R') => self.take_format(value).map_err(wrong)?,
            Some('v') => match value {
                "" => self.verbose = true,
                "s" => self.verbose_stats = true,
                _ => return Err(wrong(format!("'{value}': expected nothing or s"))),
            },
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn take_format(&mut self, value: &str) -> Result<(), String> {
        let format = match value.strip_prefix('p') {
            Some(format) => {
                self.profile_only = true;
                format
            }
            None => value,
        };
        let format = match format {
            "text" => ResultFormat::Text,
            "xml" => ResultFormat::Xml,
            "" if !value.is_empty() => return Ok(()),
            _ => return Err(format!("'{value}' is no output: expected [p]text or [p]xml, or p")),
        };
        self.format = Some(match self.format {
            Some(earlier) if earlier != format => ResultFormat::Both,
            _ => format,
        });
        Ok(())
    }

    /// Changes `profile` as said.
    pub(super) fn apply_to(&self, profile: &mut Profile) {
        profile.result_format = self.format.unwrap_or(profile.result_format);
        profile.experiment_flags = self.experiment_flags.unwrap_or(profile.experiment_flags);
        profile.verbose |= self.verbose;
        profile.verbose_stats |= self.verbose_stats;
        for span in &mut profile.time_spans {
            span.warmup = self.warmup.unwrap_or(span.warmup);
            span.duration = self.duration.unwrap_or(span.duration);
            span.cooldown = self.cooldown.unwrap_or(span.cooldown);
            span.seed = self.seed.unwrap_or(span.seed);
        }
    }
}

/// A seed; without one, milliseconds since the machine started.
fn seed(value: &str, machine: &Machine) -> Result<u32, String> {
    if value.is_empty() { Ok(machine.uptime_ms as u32) } else { whole(value) }
}

fn whole(value: &str) -> Result<u32, String> {
    let parsed = number(value).ok().and_then(|value| u32::try_from(value).ok());
    parsed.ok_or_else(|| format!("'{value}': expected a whole number of 32 bits"))
}
