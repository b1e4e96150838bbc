//! A target of a profile from XML.

use super::distribution::{Distribution, Share, Unit};
use super::profile::{CacheMode, IoPriority, MappedFlush, Target, ThreadTarget, Throughput, WriteContent};
use super::templates;
use super::xml_read::ElementReader;
use crate::error::Error;

const KNOWN: [&str; 32] = [
    "Path",
    "BlockSize",
    "BaseFileOffset",
    "SequentialScan",
    "RandomAccess",
    "TemporaryFile",
    "UseLargePages",
    "DisableLocalCache",
    "DisableOSCache",
    "DisableAllCache",
    "WriteThrough",
    "MemoryMappedIo",
    "FlushType",
    "WriteBufferContent",
    "ParallelAsyncIO",
    "BurstSize",
    "ThinkTime",
    "FileSize",
    "Random",
    "RandomRatio",
    "Distribution",
    "StrideSize",
    "InterlockedSequential",
    "ThreadStride",
    "MaxFileSize",
    "RequestCount",
    "WriteRatio",
    "Throughput",
    "ThreadsPerFile",
    "IOPriority",
    "Weight",
    "ThreadTargets",
];

pub(super) const FLUSH_TYPES: [(&str, Option<MappedFlush>); 3] = [
    ("ViewOfFile", Some(MappedFlush::ViewOfFile)),
    ("NonVolatileMemory", Some(MappedFlush::NonVolatileMemory)),
    ("NonVolatileMemoryNoDrain", Some(MappedFlush::NonVolatileMemoryNoDrain)),
];

/// Reads a target.
///
/// # Errors
/// The line that makes no sense.
pub(super) fn target(reader: &ElementReader<'_>) -> Result<Target, Error> {
    reader.known_only(&KNOWN)?;
    let (path, name) = reader.text("Path")?.ok_or_else(|| reader.wrong("<Target>: expected <Path>"))?;
    templates::check_name(name).map_err(|error| Error { place: path.wrong("").place, ..error })?;
    let mut target = Target::at(name);
    reader.set_above_zero("BlockSize", &mut target.block)?;
    reader.set("BaseFileOffset", &mut target.base)?;
    reader.set("MaxFileSize", &mut target.max_size)?;
    reader.set_flag("SequentialScan", &mut target.hints.sequential)?;
    reader.set_flag("RandomAccess", &mut target.hints.random)?;
    reader.set_flag("TemporaryFile", &mut target.hints.temporary)?;
    reader.set_flag("UseLargePages", &mut target.large_pages)?;
    set_caching(reader, &mut target)?;
    reader.set_flag("ParallelAsyncIO", &mut target.parallel)?;
    reader.set("BurstSize", &mut target.burst)?;
    reader.set("ThinkTime", &mut target.think_ms)?;
    if reader.child("FileSize")?.is_some() {
        let mut size = 0;
        reader.set("FileSize", &mut size)?;
        // Profiles that were written for existing files say 0.
        target.file_size = Some(size).filter(|size| *size > 0);
    }
    set_access(reader, &mut target)?;
    reader.set("ThreadStride", &mut target.thread_stride)?;
    reader.set_above_zero("RequestCount", &mut target.requests)?;
    set_percent(reader, "WriteRatio", 0, &mut target.write_percent)?;
    reader.set_above_zero("ThreadsPerFile", &mut target.threads)?;
    reader.set("Weight", &mut target.weight)?;
    let priorities = [
        ("0", IoPriority::Normal),
        ("1", IoPriority::VeryLow),
        ("2", IoPriority::Low),
        ("3", IoPriority::Normal),
    ];
    reader.set_choice("IOPriority", &priorities, &mut target.priority)?;
    target.throughput = throughput(reader)?;
    target.content = content(reader)?;
    target.thread_targets = thread_targets(reader)?;
    Ok(target)
}

fn set_caching(reader: &ElementReader<'_>, target: &mut Target) -> Result<(), Error> {
    let (mut local, mut system, mut all) = (false, false, false);
    reader.set_flag("DisableLocalCache", &mut local)?;
    reader.set_flag("DisableOSCache", &mut system)?;
    reader.set_flag("DisableAllCache", &mut all)?;
    reader.set_flag("WriteThrough", &mut target.write_through)?;
    reader.set_flag("MemoryMappedIo", &mut target.mapped)?;
    reader.set_choice("FlushType", &FLUSH_TYPES, &mut target.flush)?;
    target.write_through |= all;
    target.cache = match (local, system || all) {
        (true, true) => {
            return Err(
                reader.wrong("<DisableLocalCache> conflicts with <DisableOSCache> and <DisableAllCache>")
            );
        }
        (true, false) => CacheMode::LocalOff,
        (false, true) => CacheMode::Off,
        (false, false) => CacheMode::Cached,
    };
    Ok(())
}

fn set_access(reader: &ElementReader<'_>, target: &mut Target) -> Result<(), Error> {
    target.alignment = u64::from(target.block);
    reader.set_flag("InterlockedSequential", &mut target.interlocked)?;
    let random = reader.child("Random")?.or(reader.child("RandomRatio")?);
    match (reader.child("StrideSize")?, random) {
        (Some(stride), Some(random)) => {
            return Err(stride.wrong(&format!("<StrideSize> conflicts with <{}>", random.element.name)));
        }
        (Some(_), None) => reader.set("StrideSize", &mut target.alignment)?,
        (None, Some(_)) => {
            target.random_percent = 100;
            reader.set("Random", &mut target.alignment)?;
            if let Some(random) = reader.child("Random")?.filter(|_| target.alignment == 0) {
                return Err(random.wrong("<Random>: '0': expected at least 1"));
            }
            set_percent(reader, "RandomRatio", 1, &mut target.random_percent)?;
        }
        (None, None) => {}
    }
    target.distribution = distribution(reader)?;
    Ok(())
}

/// A percentage from `least`, below 100 for a share of random I/Os.
fn set_percent(reader: &ElementReader<'_>, name: &str, least: u8, place: &mut u8) -> Result<(), Error> {
    let most = if least == 0 { 100 } else { 99 };
    let Some((child, text)) = reader.text(name)? else { return Ok(()) };
    let percent = child.value::<u8>(text).ok().filter(|percent| (least..=most).contains(percent));
    *place =
        percent.ok_or_else(|| child.wrong(&format!("<{name}>: '{text}': expected {least} to {most}")))?;
    Ok(())
}

fn distribution(reader: &ElementReader<'_>) -> Result<Option<Distribution>, Error> {
    let Some(outer) = reader.child("Distribution")? else { return Ok(None) };
    outer.known_only(&["Percent", "Absolute"])?;
    let (ranges, unit) = match (outer.child("Percent")?, outer.child("Absolute")?) {
        (Some(percent), None) => (percent, Unit::Percent),
        (None, Some(absolute)) => (absolute, Unit::Absolute),
        _ => return Err(outer.wrong("<Distribution>: expected either <Percent> or <Absolute>")),
    };
    ranges.known_list("Range")?;
    let parts = ranges.children().map(|range| {
        let io: u8 = range.attribute("IO")?;
        if io > 100 {
            return Err(range.wrong(&format!("<Range IO=\"{io}\">: expected 0 to 100")));
        }
        Ok(Share { io_percent: io, length: range.value(&range.element.text)? })
    });
    let parts = parts.collect::<Result<_, _>>()?;
    let distribution = Distribution::new(unit, parts);
    distribution.map(Some).map_err(|problem| ranges.wrong(&format!("<{}>: {problem}", ranges.element.name)))
}

fn throughput(reader: &ElementReader<'_>) -> Result<Option<Throughput>, Error> {
    let Some((child, text)) = reader.text("Throughput")? else { return Ok(None) };
    let value: u32 = child.value(text)?;
    let unit =
        child.element.attributes.iter().find(|(name, _)| name == "unit").map(|(_, unit)| unit.as_str());
    let limit = match unit {
        None | Some("BPMS") => Throughput::BytesPerMillisecond(value),
        Some("IOPS") => Throughput::Iops(value),
        Some(unit) => {
            return Err(child.wrong(&format!("<Throughput unit=\"{unit}\">: expected BPMS or IOPS")));
        }
    };
    Ok(Some(limit).filter(|_| value > 0))
}

fn content(reader: &ElementReader<'_>) -> Result<WriteContent, Error> {
    let Some(outer) = reader.child("WriteBufferContent")? else { return Ok(WriteContent::Counting) };
    outer.known_only(&["Pattern", "RandomDataSource"])?;
    let mut pattern = WriteContentKind::Sequential;
    let kinds = [
        ("sequential", WriteContentKind::Sequential),
        ("zero", WriteContentKind::Zero),
        ("random", WriteContentKind::Random),
    ];
    outer.set_choice("Pattern", &kinds, &mut pattern)?;
    let source = outer.child("RandomDataSource")?;
    match (pattern, source) {
        (WriteContentKind::Random, Some(source)) => {
            source.known_only(&["SizeInBytes", "FilePath"])?;
            let mut size = 0;
            source.set("SizeInBytes", &mut size)?;
            if size == 0 {
                return Err(source.wrong("<RandomDataSource>: expected <SizeInBytes> above 0"));
            }
            let file =
                source.text("FilePath")?.map(|(_, path)| path.to_owned()).filter(|path| !path.is_empty());
            Ok(WriteContent::Buffer { size, file })
        }
        (WriteContentKind::Random, None) => Ok(WriteContent::Random),
        (_, Some(source)) => {
            Err(source.wrong("<RandomDataSource> goes with <Pattern>random</Pattern> alone"))
        }
        (WriteContentKind::Sequential, None) => Ok(WriteContent::Counting),
        (WriteContentKind::Zero, None) => Ok(WriteContent::Zero),
    }
}

#[derive(Debug, Clone, Copy)]
enum WriteContentKind {
    Sequential,
    Zero,
    Random,
}

fn thread_targets(reader: &ElementReader<'_>) -> Result<Vec<ThreadTarget>, Error> {
    let Some(list) = reader.child("ThreadTargets")? else { return Ok(Vec::new()) };
    list.known_list("ThreadTarget")?;
    let each = list.children().map(|child| {
        child.known_only(&["Thread", "Weight"])?;
        let mut target = ThreadTarget { thread: 0, weight: 0 };
        if child.child("Thread")?.is_none() {
            return Err(child.wrong("<ThreadTarget>: expected <Thread>"));
        }
        child.set("Thread", &mut target.thread)?;
        child.set("Weight", &mut target.weight)?;
        Ok(target)
    });
    each.collect()
}
