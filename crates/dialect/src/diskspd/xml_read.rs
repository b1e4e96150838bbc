//! Reading of a DiskSpd profile from XML.
//!
//! Unknown, duplicate and invalid elements are errors with their line. Older forms are accepted:
//! `DisableAllCache`, `AffinityAssignment`, `GroupAffinity`.

use super::distribution::{Distribution, Share, Unit};
use super::profile::{
    CacheMode, IoPriority, MappedFlush, Precreate, Processor, Profile, ResultFormat, Target, ThreadTarget,
    Throughput, TimeSpan, WriteContent,
};
use super::templates;
use super::xml::{self, Element};
use super::xml_fields::{ETW, Field, PROFILE, TARGET, TIME_SPAN};
use crate::error::Error;

pub(super) const RESULT_FORMATS: [(&str, ResultFormat); 2] =
    [("text", ResultFormat::Text), ("xml", ResultFormat::Xml)];

pub(super) const PRECREATE: [(&str, Precreate); 3] = [
    ("UseMaxSize", Precreate::UseMaxSize),
    ("CreateOnlyFilesWithConstantSizes", Precreate::ConstantSizes),
    ("CreateOnlyFilesWithConstantOrZeroSizes", Precreate::ConstantOrZeroSizes),
];

pub(super) const FLUSH_TYPES: [(&str, MappedFlush); 3] = [
    ("ViewOfFile", MappedFlush::ViewOfFile),
    ("NonVolatileMemory", MappedFlush::NonVolatileMemory),
    ("NonVolatileMemoryNoDrain", MappedFlush::NonVolatileMemoryNoDrain),
];

/// Names of priorities; the first name of a priority is used for writing.
pub(super) const PRIORITIES: [(&str, IoPriority); 4] = [
    ("1", IoPriority::VeryLow),
    ("2", IoPriority::Low),
    ("3", IoPriority::Normal),
    ("0", IoPriority::Normal),
];

/// Patterns without a buffer.
pub(super) const PATTERNS: [(&str, WriteContent); 3] =
    [("sequential", WriteContent::Counting), ("zero", WriteContent::Zero), ("random", WriteContent::Random)];

/// Reads a profile; `file` is its name in errors. Templates are kept.
///
/// # Errors
/// The invalid line, its element and value, and the expected form.
pub fn profile(text: &str, file: &str) -> Result<Profile, Error> {
    let document = xml::parse(text, file)?;
    let root = Element { file, node: document.root_element() };
    if root.name() != "Profile" {
        return Err(root.wrong(format!("<{}>: expected <Profile>", root.name())));
    }
    known_only(&root, &PROFILE, &["ResultFormat", "PrecreateFiles", "ETW", "TimeSpans"])?;
    let spans = root.needed_list("TimeSpans", "TimeSpan")?;
    let mut profile = Profile::new(spans.iter().map(time_span).collect::<Result<_, _>>()?);
    root.set(PROFILE[0], &mut profile)?;
    root.set(PROFILE[1], &mut profile)?;
    profile.result_format = root.choice("ResultFormat", &RESULT_FORMATS)?.unwrap_or_default();
    profile.precreate = root.choice("PrecreateFiles", &PRECREATE)?.unwrap_or_default();
    if let Some(etw) = root.child("ETW")? {
        known_only(&etw, &[&ETW], &[])?;
        etw.set(&ETW, profile.etw.insert(Default::default()))?;
    }
    Ok(profile)
}

/// Refuses children that are neither `fields` nor among `others`.
fn known_only<T>(element: &Element<'_>, fields: &[&[Field<T>]], others: &[&str]) -> Result<(), Error> {
    let fields = fields.iter().flat_map(|group| group.iter().map(|field| field.name));
    element.known_only(&fields.chain(others.iter().copied()).collect::<Vec<_>>())
}

fn time_span(element: &Element<'_>) -> Result<TimeSpan, Error> {
    known_only(element, &[&TIME_SPAN], &["GroupAffinity", "Affinity", "Targets"])?;
    let targets = element.needed_list("Targets", "Target")?;
    let mut span = TimeSpan::new(targets.iter().map(target).collect::<Result<_, _>>()?);
    element.set(&TIME_SPAN, &mut span)?;
    // Ignored: processors always have groups here.
    element.flag("GroupAffinity")?;
    if let Some(affinity) = element.child("Affinity")? {
        span.affinity = affinity.children().map(|each| processor(&each)).collect::<Result<_, _>>()?;
    }
    Ok(span)
}

fn processor(element: &Element<'_>) -> Result<Processor, Error> {
    let (group, number) = match element.name() {
        name @ "AffinityAssignment" => (0, element.whole(name, &element.text(), 0, u8::MAX.into())?),
        "AffinityGroupAssignment" => {
            (element.attribute("Group", u16::MAX.into())?, element.attribute("Processor", u8::MAX.into())?)
        }
        name => return Err(element.wrong(format!("<{name}> is not known in <Affinity>"))),
    };
    Ok(Processor { group: group as u32, number: number as u32 })
}

fn target(element: &Element<'_>) -> Result<Target, Error> {
    const OTHERS: [&str; 15] = [
        "Path",
        "DisableLocalCache",
        "DisableOSCache",
        "DisableAllCache",
        "FlushType",
        "WriteBufferContent",
        "FileSize",
        "Random",
        "RandomRatio",
        "Distribution",
        "StrideSize",
        "InterlockedSequential",
        "Throughput",
        "IOPriority",
        "ThreadTargets",
    ];
    known_only(element, &TARGET, &OTHERS)?;
    let (path, name) = element.value("Path")?.ok_or_else(|| element.wrong("<Target>: expected <Path>"))?;
    templates::check_name(&name).map_err(|error| Error { place: path.place(), ..error })?;
    let mut target = Target::at(&name);
    for fields in TARGET {
        element.set(fields, &mut target)?;
    }
    set_caching(element, &mut target)?;
    // Profiles written for existing files have 0.
    target.file_size = element.number("FileSize", 0, u64::MAX)?.filter(|size| *size > 0);
    set_access(element, &mut target)?;
    target.priority = element.choice("IOPriority", &PRIORITIES)?.unwrap_or_default();
    target.throughput = throughput(element)?;
    target.content = content(element)?;
    target.thread_targets = thread_targets(element)?;
    Ok(target)
}

fn set_caching(element: &Element<'_>, target: &mut Target) -> Result<(), Error> {
    let disabled = |name| Ok::<_, Error>(element.flag(name)?.unwrap_or(false));
    let (local, system, all) =
        (disabled("DisableLocalCache")?, disabled("DisableOSCache")?, disabled("DisableAllCache")?);
    target.flush = element.choice("FlushType", &FLUSH_TYPES)?;
    target.write_through |= all;
    target.cache = match (local, system || all) {
        (true, true) => {
            let problem = "<DisableLocalCache> conflicts with <DisableOSCache> and <DisableAllCache>";
            return Err(element.wrong(problem));
        }
        (true, false) => CacheMode::LocalOff,
        (false, true) => CacheMode::Off,
        (false, false) => CacheMode::Cached,
    };
    Ok(())
}

fn set_access(element: &Element<'_>, target: &mut Target) -> Result<(), Error> {
    target.interlocked = element.flag("InterlockedSequential")?.unwrap_or(false);
    let random = element.child("Random")?.or(element.child("RandomRatio")?);
    let (alignment, least) = match (element.child("StrideSize")?, random) {
        (Some(stride), Some(random)) => {
            return Err(stride.wrong(format!("<StrideSize> conflicts with <{}>", random.name())));
        }
        (_, None) => ("StrideSize", 0),
        (None, Some(_)) => {
            target.random_percent =
                element.number("RandomRatio", 1, 99)?.map_or(100, |percent| percent as u8);
            ("Random", 1)
        }
    };
    target.alignment = element.number(alignment, least, u64::MAX)?.unwrap_or(u64::from(target.block));
    target.distribution = distribution(element)?;
    Ok(())
}

fn distribution(element: &Element<'_>) -> Result<Option<Distribution>, Error> {
    let Some(outer) = element.child("Distribution")? else { return Ok(None) };
    outer.known_only(&["Percent", "Absolute"])?;
    let (ranges, unit) = match (outer.list("Percent", "Range")?, outer.list("Absolute", "Range")?) {
        (Some(percent), None) => (percent, Unit::Percent),
        (None, Some(absolute)) => (absolute, Unit::Absolute),
        _ => return Err(outer.wrong("<Distribution>: expected either <Percent> or <Absolute>")),
    };
    let parts = ranges.iter().map(|range| {
        let io_percent = range.attribute("IO", 100)? as u8;
        Ok(Share { io_percent, length: range.whole("Range", &range.text(), 0, u64::MAX)? })
    });
    let distribution = Distribution::new(unit, parts.collect::<Result<_, Error>>()?);
    distribution.map(Some).map_err(|problem| ranges[0].wrong(format!("<Distribution>: {problem}")))
}

fn throughput(element: &Element<'_>) -> Result<Option<Throughput>, Error> {
    let Some((child, text)) = element.value("Throughput")? else { return Ok(None) };
    let value = child.whole("Throughput", &text, 0, u32::MAX.into())? as u32;
    let limit = match child.node.attribute("unit") {
        None | Some("BPMS") => Throughput::BytesPerMillisecond(value),
        Some("IOPS") => Throughput::Iops(value),
        Some(unit) => {
            return Err(child.wrong(format!("<Throughput unit=\"{unit}\">: expected BPMS or IOPS")));
        }
    };
    Ok(Some(limit).filter(|_| value > 0))
}

fn content(element: &Element<'_>) -> Result<WriteContent, Error> {
    let Some(outer) = element.child("WriteBufferContent")? else { return Ok(WriteContent::Counting) };
    outer.known_only(&["Pattern", "RandomDataSource"])?;
    let kinds = [("sequential", 0), ("zero", 1), ("random", 2)];
    let pattern = PATTERNS[outer.choice("Pattern", &kinds)?.unwrap_or(0)].1.clone();
    let Some(source) = outer.child("RandomDataSource")? else { return Ok(pattern) };
    if pattern != WriteContent::Random {
        return Err(source.wrong("<RandomDataSource> goes with <Pattern>random</Pattern> alone"));
    }
    source.known_only(&["SizeInBytes", "FilePath"])?;
    let size = source.number("SizeInBytes", 0, u64::MAX)?.filter(|size| *size > 0);
    let size = size.ok_or_else(|| source.wrong("<RandomDataSource>: expected <SizeInBytes> above 0"))?;
    let file = source.value("FilePath")?.map(|(_, path)| path).filter(|path| !path.is_empty());
    Ok(WriteContent::Buffer { size, file })
}

fn thread_targets(element: &Element<'_>) -> Result<Vec<ThreadTarget>, Error> {
    let list = element.list("ThreadTargets", "ThreadTarget")?.unwrap_or_default();
    let each = list.iter().map(|child| {
        child.known_only(&["Thread", "Weight"])?;
        let number = |name| child.number(name, 0, u32::MAX.into());
        let thread = number("Thread")?.ok_or_else(|| child.wrong("<ThreadTarget>: expected <Thread>"))?;
        Ok(ThreadTarget { thread: thread as u32, weight: number("Weight")?.unwrap_or(0) as u32 })
    });
    each.collect()
}
