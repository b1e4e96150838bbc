//! A profile from XML.
//!
//! Every element that is not known, comes twice or holds nonsense is an error with its line. Older forms are read,
//! too: `DisableAllCache`, `AffinityAssignment`, `GroupAffinity`.

use std::str::FromStr;

use super::profile::{EtwSetting, Precreate, Processor, Profile, ResultFormat, TimeSpan};
use super::xml_read_target;
use super::xml_tree::{self, Element};
use crate::error::Error;

/// Reads the text of a profile; `file` is its name for errors. Templates stay as they are.
///
/// # Errors
/// The line that makes no sense, its element and value, and what was expected.
pub fn profile(text: &str, file: &str) -> Result<Profile, Error> {
    let root = xml_tree::parse(text, file)?;
    let reader = ElementReader { file, element: &root };
    if root.name != "Profile" {
        return Err(reader.wrong(&format!("<{}>: expected <Profile>", root.name)));
    }
    reader.known_only(&[
        "Progress",
        "ExperimentFlags",
        "ResultFormat",
        "Verbose",
        "VerboseStats",
        "PrecreateFiles",
        "ETW",
        "TimeSpans",
    ])?;
    let spans = reader.child("TimeSpans")?.ok_or_else(|| reader.wrong("<Profile>: expected <TimeSpans>"))?;
    spans.known_list("TimeSpan")?;
    let mut profile = Profile::of(spans.children().map(|span| time_span(&span)).collect::<Result<_, _>>()?);
    reader.set("Progress", &mut profile.progress)?;
    reader.set("ExperimentFlags", &mut profile.experiment_flags)?;
    reader.set_flag("Verbose", &mut profile.verbose)?;
    reader.set_flag("VerboseStats", &mut profile.verbose_stats)?;
    reader.set_choice("ResultFormat", &RESULT_FORMATS, &mut profile.result_format)?;
    reader.set_choice("PrecreateFiles", &PRECREATE, &mut profile.precreate)?;
    if let Some(etw) = reader.child("ETW")? {
        etw.known_only(&EtwSetting::ALL.map(EtwSetting::element))?;
        let mut settings = std::collections::BTreeSet::new();
        for setting in EtwSetting::ALL {
            let mut on = false;
            etw.set_flag(setting.element(), &mut on)?;
            if on {
                settings.insert(setting);
            }
        }
        profile.etw = Some(settings);
    }
    Ok(profile)
}

pub(super) const RESULT_FORMATS: [(&str, ResultFormat); 3] =
    [("text", ResultFormat::Text), ("xml", ResultFormat::Xml), ("both", ResultFormat::Both)];

pub(super) const PRECREATE: [(&str, Precreate); 3] = [
    ("UseMaxSize", Precreate::UseMaxSize),
    ("CreateOnlyFilesWithConstantSizes", Precreate::ConstantSizes),
    ("CreateOnlyFilesWithConstantOrZeroSizes", Precreate::ConstantOrZeroSizes),
];

fn time_span(reader: &ElementReader<'_>) -> Result<TimeSpan, Error> {
    reader.known_only(&[
        "CompletionRoutines",
        "MeasureLatency",
        "CalculateIopsStdDev",
        "DisableAffinity",
        "GroupAffinity",
        "Duration",
        "Warmup",
        "Cooldown",
        "ThreadCount",
        "RequestCount",
        "IoBucketDuration",
        "RandSeed",
        "RandomWriteData",
        "Affinity",
        "Targets",
    ])?;
    let targets = reader.child("Targets")?.ok_or_else(|| reader.wrong("<TimeSpan>: expected <Targets>"))?;
    targets.known_list("Target")?;
    let targets =
        targets.children().map(|target| xml_read_target::target(&target)).collect::<Result<_, _>>()?;
    let mut span = TimeSpan::of(targets);
    reader.set_flag("CompletionRoutines", &mut span.completion_routines)?;
    reader.set_flag("MeasureLatency", &mut span.measure_latency)?;
    reader.set_flag("CalculateIopsStdDev", &mut span.iops_deviation)?;
    reader.set_flag("DisableAffinity", &mut span.affinity_disabled)?;
    // Processors have groups anyway.
    reader.set_flag("GroupAffinity", &mut false)?;
    reader.set("Duration", &mut span.duration)?;
    reader.set("Warmup", &mut span.warmup)?;
    reader.set("Cooldown", &mut span.cooldown)?;
    reader.set("ThreadCount", &mut span.thread_count)?;
    reader.set("RequestCount", &mut span.request_count)?;
    reader.set_above_zero("IoBucketDuration", &mut span.bucket_ms)?;
    reader.set("RandSeed", &mut span.seed)?;
    reader.set_flag("RandomWriteData", &mut span.random_write_data)?;
    if let Some(affinity) = reader.child("Affinity")? {
        span.affinity =
            affinity.children().map(|assignment| processor(&assignment)).collect::<Result<_, _>>()?;
    }
    Ok(span)
}

fn processor(reader: &ElementReader<'_>) -> Result<Processor, Error> {
    let within = |value: u32, most: u32, name: &str| {
        let problem = || reader.wrong(&format!("<{name}>: {value}: expected at most {most}"));
        if value <= most { Ok(value) } else { Err(problem()) }
    };
    let (group, number) = match reader.element.name.as_str() {
        "AffinityAssignment" => (0, reader.value(&reader.element.text)?),
        "AffinityGroupAssignment" => (reader.attribute("Group")?, reader.attribute("Processor")?),
        name => return Err(reader.wrong(&format!("<{name}> is not known in <Affinity>"))),
    };
    let group = within(group, u32::from(u16::MAX), "Group")?;
    Ok(Processor { group, number: within(number, u32::from(u8::MAX), "Processor")? })
}

/// Reads the children of an element by name.
#[derive(Debug, Clone, Copy)]
pub(super) struct ElementReader<'a> {
    pub(super) file: &'a str,
    pub(super) element: &'a Element,
}

impl<'a> ElementReader<'a> {
    /// An error in this element.
    pub(super) fn wrong(&self, problem: &str) -> Error {
        Error::new(format!("{}:{}", self.file, self.element.line), problem)
    }

    /// All children.
    pub(super) fn children(&self) -> impl Iterator<Item = Self> + 'a {
        let file = self.file;
        self.element.children.iter().map(move |element| Self { file, element })
    }

    /// Refuses children of other names, and text.
    ///
    /// # Errors
    /// The first of them.
    pub(super) fn known_only(&self, names: &[&str]) -> Result<(), Error> {
        match self.children().find(|child| !names.contains(&child.element.name.as_str())) {
            Some(child) => {
                let (child_name, name) = (&child.element.name, &self.element.name);
                Err(child.wrong(&format!(
                    "<{child_name}> is not known in <{name}>: expected {}",
                    names.join(", ")
                )))
            }
            None => self.no_text(),
        }
    }

    /// Refuses children but those of one name, and none.
    ///
    /// # Errors
    /// What is there instead.
    pub(super) fn known_list(&self, name: &str) -> Result<(), Error> {
        self.known_only(&[name])?;
        let empty = self.element.children.is_empty();
        if empty { Err(self.wrong(&format!("<{}>: expected <{name}>", self.element.name))) } else { Ok(()) }
    }

    fn no_text(&self) -> Result<(), Error> {
        let Element { name, text, .. } = self.element;
        if text.is_empty() { Ok(()) } else { Err(self.wrong(&format!("<{name}>: '{text}' is no element"))) }
    }

    /// The only child of this name.
    ///
    /// # Errors
    /// If there are several.
    pub(super) fn child(&self, name: &str) -> Result<Option<Self>, Error> {
        let mut children = self.children().filter(|child| child.element.name == name);
        match (children.next(), children.next()) {
            (child, None) => Ok(child),
            (_, Some(second)) => Err(second.wrong(&format!("<{name}> comes a second time"))),
        }
    }

    /// The text of the only child of this name, which holds nothing else.
    ///
    /// # Errors
    /// If there are several, or elements in it.
    pub(super) fn text(&self, name: &str) -> Result<Option<(Self, &'a str)>, Error> {
        let Some(child) = self.child(name)? else { return Ok(None) };
        match child.element.children.first() {
            None => Ok(Some((child, child.element.text.as_str()))),
            Some(inner) => Err(child.wrong(&format!("<{name}> holds <{}>: expected a value", inner.name))),
        }
    }

    /// A whole number.
    ///
    /// # Errors
    /// If it is none, or does not fit.
    pub(super) fn value<T: FromStr>(&self, text: &str) -> Result<T, Error> {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let parsed = text.parse().ok().filter(|_| digits);
        parsed.ok_or_else(|| {
            let bits = 8 * size_of::<T>();
            let name = &self.element.name;
            self.wrong(&format!("<{name}>: '{text}': expected a whole number of {bits} bits"))
        })
    }

    /// The number in an attribute.
    ///
    /// # Errors
    /// If it is not there, or none.
    pub(super) fn attribute<T: FromStr>(&self, name: &str) -> Result<T, Error> {
        let found = self.element.attributes.iter().find(|(known, _)| known == name);
        let (_, text) = found
            .ok_or_else(|| self.wrong(&format!("<{}>: expected the attribute {name}", self.element.name)))?;
        self.value(text)
    }

    /// Sets `place` to the number in the child of this name, if there is one.
    ///
    /// # Errors
    /// If it makes no sense.
    pub(super) fn set<T: FromStr>(&self, name: &str, place: &mut T) -> Result<(), Error> {
        if let Some((child, text)) = self.text(name)? {
            *place = child.value(text)?;
        }
        Ok(())
    }

    /// The same for a number from 1.
    ///
    /// # Errors
    /// If it makes no sense.
    pub(super) fn set_above_zero(&self, name: &str, place: &mut u32) -> Result<(), Error> {
        self.set(name, place)?;
        match (*place, self.child(name)?) {
            (0, Some(child)) => Err(child.wrong(&format!("<{name}>: '0': expected at least 1"))),
            _ => Ok(()),
        }
    }

    /// Sets `place` to the truth in the child of this name, if there is one.
    ///
    /// # Errors
    /// If it makes no sense.
    pub(super) fn set_flag(&self, name: &str, place: &mut bool) -> Result<(), Error> {
        self.set_choice(name, &[("true", true), ("false", false), ("1", true), ("0", false)], place)
    }

    /// Sets `place` to what the child of this name chooses, if there is one.
    ///
    /// # Errors
    /// If it is none of `choices`.
    pub(super) fn set_choice<T: Copy>(
        &self,
        name: &str,
        choices: &[(&str, T)],
        place: &mut T,
    ) -> Result<(), Error> {
        let Some((child, text)) = self.text(name)? else { return Ok(()) };
        match choices.iter().find(|(choice, _)| *choice == text) {
            Some((_, value)) => {
                *place = *value;
                Ok(())
            }
            None => {
                let expected: Vec<&str> = choices.iter().map(|(choice, _)| *choice).collect();
                Err(child.wrong(&format!("<{name}>: '{text}': expected {}", expected.join(", "))))
            }
        }
    }
}
