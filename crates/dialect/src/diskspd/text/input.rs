//! Input parameters: the profile in DiskSpd's terms.

use super::super::distribution::{Distribution, Unit};
use super::super::profile::{
    CacheMode, IoPriority, MappedFlush, Profile, Target, Throughput, TimeSpan, WriteContent,
};
use super::super::size::shown;
use super::page::Page;
use crate::machine::Machine;

pub(super) fn profile(profile: &Profile, machine: &Machine, page: &mut Page) {
    page.line(&format!("\nCommand Line: {}\n", machine.argv.join(" ")));
    if profile.experiment_flags > 0 {
        page.line(&format!("Experiment Flags: {0:#x} ({0})\n", profile.experiment_flags));
    }
    page.line("Input parameters:\n");
    if profile.verbose {
        page.line("\tusing verbose mode");
    }
    for (number, span) in profile.time_spans.iter().enumerate() {
        page.line(&format!("\ttimespan: {:>3}", number + 1));
        page.line("\t-------------");
        time_span(span, page);
        page.line("");
    }
}

fn time_span(span: &TimeSpan, page: &mut Page) {
    let mut say = |line: String| page.line(&format!("\t{line}"));
    say(format!("duration: {}s", span.duration));
    say(format!("warm up time: {}s", span.warmup));
    say(format!("cool down time: {}s", span.cooldown));
    if span.affinity_disabled {
        say("affinity disabled".to_owned());
    }
    if span.measure_latency {
        say("measuring latency".to_owned());
    }
    if span.iops_deviation {
        say(format!("gathering IOPS at intervals of {}ms", span.bucket_ms));
    }
    say(format!("random seed: {}", span.seed));
    if span.thread_count > 0 {
        say(format!("thread pool with {} threads", span.thread_count));
        say(format!("number of outstanding I/O operations per thread: {}", span.request_count));
    }
    if !span.affinity.is_empty() {
        let each: Vec<String> = span
            .affinity
            .iter()
            .map(|processor| format!("{}/{}", processor.group, processor.number))
            .collect();
        say(format!("advanced affinity round robin (group/core): {}", each.join(", ")));
    }
    if span.random_write_data {
        say("generating random data for each write IO".to_owned());
        say("  WARNING: this takes more of the processor for each write; compare it only with".to_owned());
        say("           other results of -Zr".to_owned());
    }
    span.targets.iter().for_each(|each| target(span, each, page));
}

fn target(span: &TimeSpan, target: &Target, page: &mut Page) {
    match target.path.strip_prefix('*') {
        Some(number) => page.line(&format!("\tpath: template target '{number}'")),
        None => page.line(&format!("\tpath: '{}'", target.path)),
    }
    let mut lines =
        vec![format!("think time: {}ms", target.think_ms), format!("burst size: {}", target.burst)];
    caching(target, &mut lines);
    content(target, &mut lines);
    requests(span, target, &mut lines);
    range(target, &mut lines);
    threads(span, target, &mut lines);
    for line in lines {
        page.line(&format!("\t\t{line}"));
    }
    if let Some(parts) = &target.distribution {
        page.line("\t\tIO Distribution:");
        distribution(parts, page);
    }
}

fn caching(target: &Target, lines: &mut Vec<String>) {
    let cache = match target.cache {
        CacheMode::Cached => "using software cache",
        CacheMode::LocalOff => "local software cache disabled, remote cache enabled",
        CacheMode::Off => "software cache disabled",
    };
    lines.push(cache.to_owned());
    let writes = match (target.write_through, target.cache) {
        (false, _) => "using hardware write cache, writethrough off",
        (true, CacheMode::Off) => "hardware write cache disabled, writethrough on",
        (true, _) => "hardware and software write caches disabled, writethrough on",
    };
    lines.push(writes.to_owned());
    if target.mapped {
        let flush = match target.flush {
            None => "",
            Some(MappedFlush::ViewOfFile) => ", flush mode: FlushViewOfFile",
            Some(MappedFlush::NonVolatileMemory) => ", flush mode: FlushNonVolatileMemory",
            Some(MappedFlush::NonVolatileMemoryNoDrain) => {
                ", flush mode: FlushNonVolatileMemory with no drain"
            }
        };
        lines.push(format!("memory mapped I/O enabled{flush}"));
    }
}

fn content(target: &Target, lines: &mut Vec<String>) {
    match &target.content {
        WriteContent::Counting | WriteContent::Random => {}
        WriteContent::Zero => lines.push("zeroing write buffers".to_owned()),
        WriteContent::Buffer { size, file } => {
            lines.push(format!("write buffer size: {}", shown(*size)));
            let source = file.as_ref().map_or_else(|| "random fill".to_owned(), |path| format!("'{path}'"));
            lines.push(format!("write buffer source: {source}"));
        }
    }
}

fn requests(span: &TimeSpan, target: &Target, lines: &mut Vec<String>) {
    if target.parallel {
        lines.push("using parallel async I/O".to_owned());
    }
    lines.push(match target.write_percent {
        0 => "performing read test".to_owned(),
        100 => "performing write test".to_owned(),
        writes => format!("performing mix test (read/write ratio: {}/{writes})", 100 - writes),
    });
    lines.push(format!("block size: {}", shown(u64::from(target.block))));
    let aligned = shown(target.alignment);
    lines.push(match (target.random_percent, target.interlocked) {
        (100, _) => format!("using random I/O (alignment: {aligned})"),
        (0, true) => format!("using interlocked sequential I/O (stride: {aligned})"),
        (0, false) => format!("using sequential I/O (stride: {aligned})"),
        (percent, _) => {
            format!("using mixed random/sequential I/O ({percent}% random) (alignment/stride: {aligned})")
        }
    });
    lines.push(if span.requests_are_shared() {
        format!("relative IO weight in thread pool: {}", target.weight)
    } else {
        format!("number of outstanding I/O operations per thread: {}", target.requests)
    });
}

fn range(target: &Target, lines: &mut Vec<String>) {
    let sizes = [
        ("base file offset", target.base),
        ("max file size", target.max_size),
        ("thread stride size", target.thread_stride),
    ];
    for (name, size) in sizes {
        if size > 0 {
            lines.push(format!("{name}: {}", shown(size)));
        }
    }
    let hints = [
        (target.hints.sequential, "FILE_FLAG_SEQUENTIAL_SCAN"),
        (target.hints.random, "FILE_FLAG_RANDOM_ACCESS"),
        (target.hints.temporary, "FILE_ATTRIBUTE_TEMPORARY"),
    ];
    for (given, name) in hints {
        if given {
            lines.push(format!("using {name} hint"));
        }
    }
}

fn threads(span: &TimeSpan, target: &Target, lines: &mut Vec<String>) {
    if span.thread_count == 0 {
        lines.push(format!("threads per file: {}", target.threads));
        if target.requests > 1 {
            lines.push(match span.completion_routines {
                true => "using completion routines (ReadFileEx/WriteFileEx)".to_owned(),
                false => "using I/O Completion Ports".to_owned(),
            });
        }
    }
    let priority = match target.priority {
        IoPriority::VeryLow => "very low",
        IoPriority::Low => "low",
        IoPriority::Normal => "normal",
    };
    lines.push(format!("IO priority: {priority}"));
    match target.throughput {
        None => {}
        Some(Throughput::Iops(iops)) => lines.push(format!("throughput rate-limited to {iops} IOPS")),
        Some(Throughput::BytesPerMillisecond(bytes)) => {
            lines.push(format!("throughput rate-limited to {bytes} B/ms"));
        }
    }
}

fn distribution(distribution: &Distribution, page: &mut Page) {
    let mut from = 0_u64;
    for part in &distribution.parts {
        let to = from.saturating_add(part.length);
        let (start, end, of) = match (distribution.unit, part.length) {
            (Unit::Percent, _) => (format!("{from:>2}%"), format!("{to:>3}%"), " of target"),
            (Unit::Absolute, 0) => (shown(from), "end".to_owned(), ""),
            (Unit::Absolute, _) => (shown(from), shown(to), ""),
        };
        match distribution.unit {
            Unit::Percent => {
                page.line(&format!("\t\t   {:>3}% of IO => [{start} - {end}){of}", part.io_percent))
            }
            Unit::Absolute => {
                page.line(&format!("\t\t   {:>3}% of IO => [{start:>9} - {end:>9})", part.io_percent))
            }
        }
        from = to;
    }
}
