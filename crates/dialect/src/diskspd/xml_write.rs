//! A profile as XML, in DiskSpd's order and indentation: reading it back gives the same profile.

use std::fmt::{Display, Write as _};

use quick_xml::escape::escape;

use super::distribution::Unit;
use super::profile::{
    CacheMode, EtwSetting, IoPriority, Precreate, Profile, Target, Throughput, TimeSpan, WriteContent,
};
use super::xml_read::{PRECREATE, RESULT_FORMATS};
use super::xml_read_target::FLUSH_TYPES;

/// The profile as a document of its own.
pub fn profile(profile: &Profile) -> String {
    let mut writer = XmlWriter::default();
    write_into(profile, &mut writer);
    writer.finish()
}

/// The profile within another document.
pub(super) fn write_into(profile: &Profile, writer: &mut XmlWriter) {
    writer.open("Profile");
    writer.value("Progress", profile.progress);
    if profile.experiment_flags > 0 {
        writer.value("ExperimentFlags", profile.experiment_flags);
    }
    writer.choice("ResultFormat", &RESULT_FORMATS, &profile.result_format);
    writer.value("Verbose", profile.verbose);
    if profile.verbose_stats {
        writer.value("VerboseStats", true);
    }
    if profile.precreate != Precreate::None {
        writer.choice("PrecreateFiles", &PRECREATE, &profile.precreate);
    }
    if let Some(settings) = &profile.etw {
        writer.open("ETW");
        for setting in EtwSetting::ALL {
            writer.value(setting.element(), settings.contains(&setting));
        }
        writer.close("ETW");
    }
    writer.open("TimeSpans");
    profile.time_spans.iter().for_each(|span| time_span(span, writer));
    writer.close("TimeSpans");
    writer.close("Profile");
}

fn time_span(span: &TimeSpan, writer: &mut XmlWriter) {
    writer.open("TimeSpan");
    writer.value("CompletionRoutines", span.completion_routines);
    writer.value("MeasureLatency", span.measure_latency);
    writer.value("CalculateIopsStdDev", span.iops_deviation);
    writer.value("DisableAffinity", span.affinity_disabled);
    writer.value("Duration", span.duration);
    writer.value("Warmup", span.warmup);
    writer.value("Cooldown", span.cooldown);
    writer.value("ThreadCount", span.thread_count);
    writer.value("RequestCount", span.request_count);
    writer.value("IoBucketDuration", span.bucket_ms);
    writer.value("RandSeed", span.seed);
    if span.random_write_data {
        writer.value("RandomWriteData", true);
    }
    if !span.affinity.is_empty() {
        writer.open("Affinity");
        for processor in &span.affinity {
            let (group, number) = (processor.group, processor.number);
            writer.line(&format!("<AffinityGroupAssignment Group=\"{group}\" Processor=\"{number}\"/>"));
        }
        writer.close("Affinity");
    }
    writer.open("Targets");
    span.targets.iter().for_each(|each| target(each, writer));
    writer.close("Targets");
    writer.close("TimeSpan");
}

fn target(target: &Target, writer: &mut XmlWriter) {
    writer.open("Target");
    writer.value("Path", &target.path);
    writer.value("BlockSize", target.block);
    writer.value("BaseFileOffset", target.base);
    writer.value("SequentialScan", target.hints.sequential);
    writer.value("RandomAccess", target.hints.random);
    writer.value("TemporaryFile", target.hints.temporary);
    writer.value("UseLargePages", target.large_pages);
    caching(target, writer);
    content(target, writer);
    writer.value("ParallelAsyncIO", target.parallel);
    if target.burst > 0 {
        writer.value("BurstSize", target.burst);
    }
    if target.think_ms > 0 {
        writer.value("ThinkTime", target.think_ms);
    }
    if let Some(size) = target.file_size {
        writer.value("FileSize", size);
    }
    access(target, writer);
    writer.value("ThreadStride", target.thread_stride);
    writer.value("MaxFileSize", target.max_size);
    writer.value("RequestCount", target.requests);
    writer.value("WriteRatio", target.write_percent);
    match target.throughput {
        Some(Throughput::Iops(iops)) => {
            writer.line(&format!("<Throughput unit=\"IOPS\">{iops}</Throughput>"))
        }
        Some(Throughput::BytesPerMillisecond(bytes)) => writer.value("Throughput", bytes),
        None => writer.value("Throughput", 0),
    }
    writer.value("ThreadsPerFile", target.threads);
    let priority = match target.priority {
        IoPriority::VeryLow => 1,
        IoPriority::Low => 2,
        IoPriority::Normal => 3,
    };
    writer.value("IOPriority", priority);
    writer.value("Weight", target.weight);
    thread_targets(target, writer);
    writer.close("Target");
}

fn caching(target: &Target, writer: &mut XmlWriter) {
    match target.cache {
        CacheMode::Cached => {}
        CacheMode::LocalOff => writer.value("DisableLocalCache", true),
        CacheMode::Off => writer.value("DisableOSCache", true),
    }
    if target.write_through {
        writer.value("WriteThrough", true);
    }
    if target.mapped {
        writer.value("MemoryMappedIo", true);
    }
    if target.flush.is_some() {
        writer.choice("FlushType", &FLUSH_TYPES, &target.flush);
    }
}

fn content(target: &Target, writer: &mut XmlWriter) {
    writer.open("WriteBufferContent");
    match &target.content {
        WriteContent::Counting => writer.value("Pattern", "sequential"),
        WriteContent::Zero => writer.value("Pattern", "zero"),
        WriteContent::Random => writer.value("Pattern", "random"),
        WriteContent::Buffer { size, file } => {
            writer.value("Pattern", "random");
            writer.open("RandomDataSource");
            writer.value("SizeInBytes", size);
            if let Some(path) = file {
                writer.value("FilePath", path);
            }
            writer.close("RandomDataSource");
        }
    }
    writer.close("WriteBufferContent");
}

fn access(target: &Target, writer: &mut XmlWriter) {
    if target.random_percent == 0 {
        writer.value("StrideSize", target.alignment);
        writer.value("InterlockedSequential", target.interlocked);
        return;
    }
    writer.value("Random", target.alignment);
    if target.random_percent < 100 {
        writer.value("RandomRatio", target.random_percent);
    }
    let Some(distribution) = &target.distribution else { return };
    let unit = match distribution.unit {
        Unit::Percent => "Percent",
        Unit::Absolute => "Absolute",
    };
    writer.open("Distribution");
    writer.open(unit);
    for part in &distribution.parts {
        writer.line(&format!("<Range IO=\"{}\">{}</Range>", part.io_percent, part.length));
    }
    writer.close(unit);
    writer.close("Distribution");
}

fn thread_targets(target: &Target, writer: &mut XmlWriter) {
    if target.thread_targets.is_empty() {
        return;
    }
    writer.open("ThreadTargets");
    for each in &target.thread_targets {
        writer.open("ThreadTarget");
        writer.value("Thread", each.thread);
        if each.weight > 0 {
            writer.value("Weight", each.weight);
        }
        writer.close("ThreadTarget");
    }
    writer.close("ThreadTargets");
}

/// Lines of XML, two spaces deeper in each element.
#[derive(Debug, Default)]
pub(super) struct XmlWriter {
    written: String,
    depth: usize,
}

impl XmlWriter {
    /// An element that holds others.
    pub(super) fn open(&mut self, name: &str) {
        self.line(&format!("<{name}>"));
        self.depth += 1;
    }

    /// The same with attributes, which are written as they are.
    pub(super) fn open_with(&mut self, name: &str, attributes: &str) {
        self.line(&format!("<{name} {attributes}>"));
        self.depth += 1;
    }

    /// The end of the element opened last.
    pub(super) fn close(&mut self, name: &str) {
        self.depth = self.depth.saturating_sub(1);
        self.line(&format!("</{name}>"));
    }

    /// An element that holds a value.
    pub(super) fn value(&mut self, name: &str, value: impl Display) {
        let value = value.to_string().replace(is_unspeakable, "\u{fffd}");
        self.line(&format!("<{name}>{}</{name}>", escape(&value)));
    }

    /// An element that holds the name of a choice.
    fn choice<T: PartialEq>(&mut self, name: &str, choices: &[(&str, T)], value: &T) {
        if let Some((chosen, _)) = choices.iter().find(|(_, choice)| choice == value) {
            self.value(name, chosen);
        }
    }

    /// A line as it is.
    pub(super) fn line(&mut self, line: &str) {
        // Writing to a string cannot fail.
        let written = writeln!(self.written, "{:1$}{line}", "", 2 * self.depth);
        debug_assert!(written.is_ok(), "a string refused to be written to");
    }

    /// All of it.
    pub(super) fn finish(self) -> String {
        self.written
    }
}

/// What XML 1.0 (2.2, Characters) has no way to say; a file's name may hold it.
const fn is_unspeakable(letter: char) -> bool {
    matches!(letter, '\0'..='\x08' | '\x0b' | '\x0c' | '\x0e'..='\x1f' | '\u{fffe}' | '\u{ffff}')
}
