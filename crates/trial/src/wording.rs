//! Descriptions of jobs.

use plumb_block::Bytes;
use plumb_workload::{Access, Content, Distribution, RecordedEvents, Runs, Span, Walk, Workload};

/// Returns `random reads of 4 KiB`, `70 % random reads, 30 % writes of 8 KiB`.
pub(crate) fn description(workload: &Workload) -> String {
    let order = match &workload.access {
        Access::Random(random) => match (&random.distribution, random.runs) {
            (_, Runs::Geometric { random_percent }) => format!("{random_percent} % random "),
            (Distribution::Uniform | Distribution::EachOnce, _) => "random ".to_owned(),
            (Distribution::Zipf { theta }, _) => format!("random (Zipf {theta}) "),
            (Distribution::Pareto { power }, _) => format!("random (Pareto {power}) "),
            (Distribution::Normal { deviation_percent }, _) => {
                format!("random (normal, {deviation_percent} %) ")
            }
            (Distribution::Zoned(_), _) => "random (in zones) ".to_owned(),
        },
        Access::Sequential(sequential) => match sequential.walk {
            Walk::Each => sequential.stride.map_or_else(
                || "sequential ".to_owned(),
                |stride| format!("sequential (one every {stride}) "),
            ),
            Walk::Interlocked => "sequential (interlocked) ".to_owned(),
            Walk::Parallel => "sequential (in parallel) ".to_owned(),
        },
    };
    format!("{order}{}", mix_of(workload))
}

/// Returns `the trace t.log: 70 % reads, 30 % writes of 512 B to 64 KiB`.
pub(crate) fn replay(recorded: &RecordedEvents, workload: &Workload) -> String {
    format!("the trace {}: {}", recorded.how().path, mix_of(workload))
}

fn mix_of(workload: &Workload) -> String {
    let read_percent = 100_u8.saturating_sub(workload.write_percent).saturating_sub(workload.trim_percent);
    let kinds =
        [("reads", read_percent), ("writes", workload.write_percent), ("trims", workload.trim_percent)];
    let used: Vec<_> = kinds.into_iter().filter(|(_, percent)| *percent > 0).collect();
    let mix = match used[..] {
        [(kind, _)] => kind.to_owned(),
        _ => used.iter().map(|(kind, percent)| format!("{percent} % {kind}")).collect::<Vec<_>>().join(", "),
    };
    format!("{mix} of {}", sizes(workload))
}

fn sizes(workload: &Workload) -> String {
    match (workload.blocks.only(), workload.blocks.min(), workload.blocks.max()) {
        (Some(block), _, _) => block.to_string(),
        (None, least, most) => format!("{least} to {most}"),
    }
}

/// Describes the written content.
pub(crate) fn content(content: &Content) -> String {
    match content {
        Content::Pattern => "noise that neither compresses nor repeats".to_owned(),
        Content::Reducible { compress_percent, dedup_percent } => {
            format!("noise of which {compress_percent} % compresses and {dedup_percent} % of blocks repeat")
        }
        Content::Repeated => "one block of noise again and again".to_owned(),
        Content::Zeroes => "zeroes".to_owned(),
        Content::Counting => "the bytes 0 to 255 over and over".to_owned(),
        Content::Buffer(size) => format!("parts of {size} of noise"),
        Content::File { size, path } => format!("parts of the first {size} of {path}"),
    }
}

/// Returns true if the written data compresses or repeats.
pub(crate) fn is_reducible(content: &Content) -> bool {
    match content {
        Content::Pattern => false,
        Content::Reducible { compress_percent, dedup_percent } => *compress_percent > 0 || *dedup_percent > 0,
        Content::Buffer(size) => *size < Bytes::gib(1),
        Content::Repeated | Content::Zeroes | Content::Counting | Content::File { .. } => true,
    }
}

/// Returns the number of requests that job `number` of a span keeps in flight on each of its targets, all
/// threads together.
pub(crate) fn depth_on_each(span: &Span, number: usize, depth: u32) -> Option<u64> {
    let job = &span.jobs[number];
    let joined = job.same_threads || span.jobs.get(number + 1).is_some_and(|next| next.same_threads);
    // One depth for several targets is not divided among them in a fixed way.
    (!job.depth_shared || (job.targets.len() == 1 && !joined))
        .then(|| u64::from(depth) * u64::from(job.threads))
}
