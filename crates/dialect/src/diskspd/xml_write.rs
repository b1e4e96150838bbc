//! Writing of a profile as XML, in DiskSpd's order and indentation. [`xml_read`](super::xml_read) reads the
//! same profile back.

use super::distribution::Unit;
use super::profile::{CacheMode, Precreate, Profile, Target, Throughput, TimeSpan, WriteContent};
use super::xml::XmlWriter;
use super::xml_fields::{ETW, PROFILE, TARGET, TIME_SPAN};
use super::xml_read::{FLUSH_TYPES, PATTERNS, PRECREATE, PRIORITIES, RESULT_FORMATS};

/// Returns the profile as an XML document.
pub fn profile(profile: &Profile) -> String {
    let mut writer = XmlWriter::default();
    write_into(profile, &mut writer);
    writer.written
}

/// Writes the profile as part of another document.
pub(super) fn write_into(profile: &Profile, writer: &mut XmlWriter) {
    writer.open("Profile");
    writer.fields(PROFILE[0], profile);
    writer.choice("ResultFormat", &RESULT_FORMATS, &profile.result_format);
    writer.fields(PROFILE[1], profile);
    if profile.precreate != Precreate::None {
        writer.choice("PrecreateFiles", &PRECREATE, &profile.precreate);
    }
    if let Some(settings) = &profile.etw {
        writer.open("ETW");
        writer.fields(&ETW, settings);
        writer.close("ETW");
    }
    writer.open("TimeSpans");
    profile.time_spans.iter().for_each(|span| time_span(span, writer));
    writer.close("TimeSpans");
    writer.close("Profile");
}

fn time_span(span: &TimeSpan, writer: &mut XmlWriter) {
    writer.open("TimeSpan");
    writer.fields(&TIME_SPAN, span);
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
    let [start, caches, pace, range, threads, weight] = TARGET;
    writer.open("Target");
    writer.value("Path", &target.path);
    writer.fields(start, target);
    match target.cache {
        CacheMode::Cached => {}
        CacheMode::LocalOff => writer.value("DisableLocalCache", true),
        CacheMode::Off => writer.value("DisableOSCache", true),
    }
    writer.fields(caches, target);
    if let Some(flush) = &target.flush {
        writer.choice("FlushType", &FLUSH_TYPES, flush);
    }
    content(target, writer);
    writer.fields(pace, target);
    if let Some(size) = target.file_size {
        writer.value("FileSize", size);
    }
    access(target, writer);
    writer.fields(range, target);
    match target.throughput {
        Some(Throughput::Iops(iops)) => {
            writer.line(&format!("<Throughput unit=\"IOPS\">{iops}</Throughput>"))
        }
        Some(Throughput::BytesPerMillisecond(bytes)) => writer.value("Throughput", bytes),
        None => writer.value("Throughput", 0),
    }
    writer.fields(threads, target);
    writer.choice("IOPriority", &PRIORITIES, &target.priority);
    writer.fields(weight, target);
    thread_targets(target, writer);
    writer.close("Target");
}

fn content(target: &Target, writer: &mut XmlWriter) {
    writer.open("WriteBufferContent");
    writer.choice("Pattern", &PATTERNS, &target.content);
    if let WriteContent::Buffer { size, file } = &target.content {
        writer.value("Pattern", "random");
        writer.open("RandomDataSource");
        writer.value("SizeInBytes", size);
        if let Some(path) = file {
            writer.value("FilePath", path);
        }
        writer.close("RandomDataSource");
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
