//! Switches, each by itself, before conflicts are checked.

use super::access::Access;
use super::affinity;
use super::caching::Caching;
use super::profile::{EtwSettings, IoPriority, Profile, Target, Throughput, TimeSpan, WriteContent};
use super::size::{number_within, size, size_before};
use crate::error::Error;

/// Profile under construction from the switches of a command line.
#[derive(Debug)]
pub(super) struct Draft {
    /// Profile with its only time span, still without targets.
    pub(super) profile: Profile,
    /// Properties of every target.
    pub(super) target: Target,
    access: Access,
    caching: Caching,
    /// Argument that set the end of the range.
    end_given: Option<String>,
    base_given: Option<String>,
}

impl Draft {
    /// Creates a draft with the block size, which sizes in `b` refer to.
    pub(super) fn new(block: u32) -> Self {
        let profile = Profile::new(vec![TimeSpan::new(Vec::new())]);
        let target = Target { block, alignment: u64::from(block), ..Target::at("") };
        Self {
            profile,
            target,
            access: Access::default(),
            caching: Caching::default(),
            end_given: None,
            base_given: None,
        }
    }

    /// Returns the profile for these targets.
    ///
    /// # Errors
    /// Fails if switches are in conflict.
    pub(super) fn finish(mut self, targets: &[String]) -> Result<Profile, Error> {
        std::mem::take(&mut self.access).apply_to(&mut self.target)?;
        self.caching.apply_to(&mut self.target);
        let target = &self.target;
        let targets = targets.iter().map(|path| Target { path: path.clone(), ..target.clone() }).collect();
        self.span().targets = targets;
        Ok(self.profile)
    }

    /// Applies a switch other than [`overrides`](super::overrides).
    ///
    /// # Errors
    /// Fails if the switch is unknown or its value invalid.
    pub(super) fn take(&mut self, typed: &str) -> Result<(), Error> {
        let mut characters = typed.chars();
        characters.next();
        let letter = characters.next();
        let value = characters.as_str();
        let wrong = |problem: String| Error::new(typed, problem);
        let block = u64::from(self.target.block);
        match letter {
            // The block size was read before all other switches.
            Some('b') => Ok(()),
            Some('r') => self.access.add_random(typed, value, block),
            Some('s') => self.access.add_stride(typed, value, block),
            Some('S') => self.caching.add_flags(value).map_err(wrong),
            Some('N') => self.caching.set_flush(value).map_err(wrong),
            Some('h') => nothing(value).and_then(|()| self.caching.add_flags("h")).map_err(wrong),
            Some('B') => self.take_base(typed, value).map_err(wrong),
            Some('f') => self.take_end_or_hints(typed, value).map_err(wrong),
            Some('Z') => self.take_content(value).map_err(wrong),
            Some('y') => Err(event(typed, value)),
            Some(letter) => {
                match self.take_of_span(letter, value).or_else(|| self.take_of_target(letter, value)) {
                    Some(taken) => taken.map_err(wrong),
                    None => Err(unknown(typed)),
                }
            }
            None => Err(unknown(typed)),
        }
    }

    /// Applies a switch of the run or its time span; `None` for other switches.
    fn take_of_span(&mut self, letter: char, value: &str) -> Option<Result<(), String>> {
        let span = self.profile.time_spans.first_mut()?;
        Some(match letter {
            'a' => affinity::parse(value).map(|processors| span.affinity.extend(processors)),
            'D' => default_or_count(value, 1000).map(|ms| {
                span.iops_deviation = true;
                span.bucket_ms = ms;
            }),
            'e' => add_etw(&mut self.profile.etw, value),
            'F' => count(value).map(|threads| span.thread_count = threads),
            'L' => nothing(value).map(|()| span.measure_latency = true),
            'n' => nothing(value).map(|()| span.affinity_disabled = true),
            'O' => count(value).map(|requests| span.request_count = requests),
            'P' => default_or_count(value, 65_536).map(|every| self.profile.progress = every),
            'x' => nothing(value).map(|()| span.completion_routines = true),
            _ => return None,
        })
    }

    /// Applies a switch of all targets; `None` for other switches.
    fn take_of_target(&mut self, letter: char, value: &str) -> Option<Result<(), String>> {
        let target = &mut self.target;
        let block = u64::from(target.block);
        Some(match letter {
            'c' => above_zero(value, block).map(|size| target.file_size = Some(size)),
            'g' => throughput(value).map(|throughput| target.throughput = Some(throughput)),
            'i' => count(value).map(|burst| target.burst = burst),
            'I' => number_within(value, 1, 3).map(|level| target.priority = priority(level)),
            'j' => count(value).map(|ms| target.think_ms = ms),
            'l' => nothing(value).map(|()| target.large_pages = true),
            'o' => count(value).map(|requests| target.requests = requests),
            'p' => nothing(value).map(|()| target.parallel = true),
            't' => count(value).map(|threads| target.threads = threads),
            'T' => above_zero(value, block).map(|stride| target.thread_stride = stride),
            'w' => number_within(value, 0, 100).map(|percent| target.write_percent = percent as u8),
            _ => return None,
        })
    }

    /// Applies `-Bbase[:length]`.
    fn take_base(&mut self, typed: &str, value: &str) -> Result<(), String> {
        if let Some(earlier) = &self.base_given {
            return Err(format!("the base was given before, by {earlier}"));
        }
        let block = u64::from(self.target.block);
        let (base, rest) = size_before(value, block)?;
        match rest.strip_prefix(':') {
            Some("") => return Err(format!("'{value}': no length after ':'")),
            Some(length) => {
                let end = base.checked_add(size(length, block)?);
                self.set_end(typed, end.ok_or_else(|| format!("'{value}' ends above 16 EiB"))?)?;
            }
            None if rest.is_empty() => {}
            None => return Err(format!("'{value}': expected a size, and ':' and a length if wanted")),
        }
        self.target.base = base;
        self.base_given = Some(typed.to_owned());
        Ok(())
    }

    /// Applies `-f<size>` or the hints `-f{r,s,t}`.
    fn take_end_or_hints(&mut self, typed: &str, value: &str) -> Result<(), String> {
        if value.starts_with(|first: char| first.is_ascii_digit()) {
            let end = size(value, u64::from(self.target.block))?;
            return self.set_end(typed, end);
        }
        if value.is_empty() {
            return Err("expected a size, or hints of r, s and t".to_owned());
        }
        for hint in value.chars() {
            match hint {
                'r' => self.target.hints.random = true,
                's' => self.target.hints.sequential = true,
                't' => self.target.hints.temporary = true,
                _ => return Err(format!("'{value}' is neither a size nor hints of r, s and t")),
            }
        }
        Ok(())
    }

    fn set_end(&mut self, typed: &str, end: u64) -> Result<(), String> {
        if let Some(earlier) = &self.end_given {
            return Err(format!("the end of the range was given before, by {earlier}"));
        }
        self.end_given = Some(typed.to_owned());
        self.target.max_size = end;
        Ok(())
    }

    /// Applies `-Z`, `-Zr`, `-Z<size>[,file]`.
    fn take_content(&mut self, value: &str) -> Result<(), String> {
        let content = match value {
            "" => WriteContent::Zero,
            "r" => {
                self.span().random_write_data = true;
                return self.one_content();
            }
            _ => {
                let (size, file) = match value.split_once(',') {
                    Some((_, "")) => return Err(format!("'{value}': no file after ','")),
                    Some((size, file)) => (size, Some(file.to_owned())),
                    None => (value, None),
                };
                WriteContent::Buffer { size: above_zero(size, u64::from(self.target.block))?, file }
            }
        };
        self.target.content = content;
        self.one_content()
    }

    fn one_content(&mut self) -> Result<(), String> {
        let fixed = self.target.content != WriteContent::Counting;
        if fixed && self.span().random_write_data {
            return Err("writes have one content: -Zr conflicts with -Z and -Z<size>".to_owned());
        }
        Ok(())
    }

    fn span(&mut self) -> &mut TimeSpan {
        &mut self.profile.time_spans[0]
    }
}

/// Values of `-e` for the settings of Windows event tracing.
const ETW_SWITCHES: [&str; 12] = [
    "PROCESS",
    "THREAD",
    "IMAGE_LOAD",
    "DISK_IO",
    "MEMORY_PAGE_FAULTS",
    "MEMORY_HARD_FAULTS",
    "NETWORK",
    "REGISTRY",
    "p",
    "q",
    "s",
    "c",
];

fn add_etw(settings: &mut Option<EtwSettings>, value: &str) -> Result<(), String> {
    let place = ETW_SWITCHES.iter().position(|switch| *switch == value).ok_or_else(|| {
        format!("'{value}' is not a tracing setting: expected one of {}", ETW_SWITCHES.join(", "))
    })?;
    settings.get_or_insert_default()[place] = true;
    Ok(())
}

/// Parses `-b<size>`.
///
/// # Errors
/// Fails unless the size is from 1 byte to less than 4 GiB.
pub(super) fn block(typed: &str, value: &str) -> Result<u32, Error> {
    let wrong = |problem: String| {
        Error::new(typed, problem).remedy("a switch and its value are one argument: -b4k, not -b 4k")
    };
    if value.ends_with(['b', 'B']) {
        return Err(wrong(format!("'{value}': the block cannot be given in blocks")));
    }
    let bytes = size(value, 1).map_err(wrong)?;
    let fits = u32::try_from(bytes).ok().filter(|bytes| (1..u32::MAX).contains(bytes));
    fits.ok_or_else(|| wrong(format!("'{value}' is not a block size: expected 1 byte to less than 4 GiB")))
}

/// Returns the error of an unknown switch.
pub(super) fn unknown(typed: &str) -> Error {
    Error::new(typed, format!("'{typed}' is not a switch of DiskSpd")).remedy("-? lists them")
}

fn event(typed: &str, value: &str) -> Error {
    match value.chars().next() {
        Some('s' | 'f' | 'r' | 'p' | 'e') => {
            let problem = format!("'{value}' names a Windows event, and Linux has none");
            Error::new(typed, problem).remedy("the run starts at once, and Ctrl-C or SIGTERM ends it early")
        }
        _ => unknown(typed),
    }
}

fn throughput(value: &str) -> Result<Throughput, String> {
    Ok(match value.strip_suffix('i') {
        Some(iops) => Throughput::Iops(count(iops)?),
        None => Throughput::BytesPerMillisecond(count(value)?),
    })
}

fn priority(level: u32) -> IoPriority {
    match level {
        1 => IoPriority::VeryLow,
        2 => IoPriority::Low,
        _ => IoPriority::Normal,
    }
}

/// Parses a count of at least 1.
fn count(value: &str) -> Result<u32, String> {
    number_within(value, 1, i32::MAX as u32)
}

/// Parses a count; empty and 0 mean the default.
fn default_or_count(value: &str, default: u32) -> Result<u32, String> {
    if value.is_empty() || number_within(value, 0, 0).is_ok() { Ok(default) } else { count(value) }
}

fn above_zero(value: &str, block: u64) -> Result<u64, String> {
    match size(value, block)? {
        0 => Err(format!("'{value}': expected a size above 0")),
        bytes => Ok(bytes),
    }
}

fn nothing(value: &str) -> Result<(), String> {
    if value.is_empty() { Ok(()) } else { Err(format!("takes no value, but '{value}' follows")) }
}
