//! The metrics of a load.

use super::Metrics;
use crate::document::{Part, RunDocument, RunRecording, Sides};

/// The metrics of a recording. The caller writes them to a temporary file and renames it.
pub fn load(recording: &RunRecording) -> String {
    let document = &recording.document;
    let environment = &document.environment;
    let labels = document.labels();
    let mut out = Metrics::default();
    let info =
        [("version", environment.plumb.as_str()), ("kernel", environment.kernel.as_deref().unwrap_or(""))];
    out.family("plumb_load_info", "gauge", "Which version made the load.");
    out.sample("plumb_load_info", &info, 1.0);
    out.family("plumb_load_complete", "gauge", "Whether the load ran to its end.");
    out.sample("plumb_load_complete", &[], f64::from(u8::from(document.complete)));
    out.family("plumb_load_window_seconds", "gauge", "How long was measured.");
    out.sample("plumb_load_window_seconds", &[], document.duration);
    out.findings("plumb_load", &[], &document.verdicts);
    for figure in FIGURES {
        figure.put(&mut out, document, &labels);
    }
    directions(&mut out, document, &labels);
    histograms(&mut out, recording, &labels);
    out.text
}

/// A figure of each target, seen from one side or both.
struct Figure {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    /// The sides with their values; what is not known is left out.
    of: fn(&Sides) -> Vec<(&'static str, f64)>,
}

const FIGURES: [Figure; 5] = [
    Figure {
        name: "plumb_load_operations_per_second",
        kind: "gauge",
        help: "Operations per second of a target, seen from each side.",
        of: |sides| {
            let storage = sides.storage.iter().map(|storage| ("storage", storage.iops));
            storage.chain([("application", sides.application.iops)]).collect()
        },
    },
    Figure {
        name: "plumb_load_bytes_per_second",
        kind: "gauge",
        help: "Bytes per second of a target, seen from each side.",
        of: |sides| {
            let storage = sides.storage.iter().map(|storage| ("storage", storage.bytes_per_second));
            storage.chain([("application", sides.application.bytes_per_second)]).collect()
        },
    },
    Figure {
        name: "plumb_load_flushes",
        kind: "gauge",
        help: "Flushes in the window: asked for by the load, and handed to the devices.",
        of: |sides| {
            let storage = sides.storage.iter().filter_map(|storage| storage.flushes);
            storage
                .map(|flushes| ("storage", flushes as f64))
                .chain([("application", sides.sync.ios as f64)])
                .collect()
        },
    },
    Figure {
        name: "plumb_load_in_flight",
        kind: "gauge",
        help: "Mean requests in flight.",
        of: |sides| sides.application.in_flight_mean.map(|mean| ("application", mean)).into_iter().collect(),
    },
    Figure {
        name: "plumb_load_wrong_blocks",
        kind: "gauge",
        help: "Blocks that do not hold what was written, where that was verified.",
        of: |sides| sides.verified.iter().map(|verified| ("application", verified.wrong() as f64)).collect(),
    },
];

impl Figure {
    fn put(&self, out: &mut Metrics, document: &RunDocument, labels: &[String]) {
        let mut samples = document
            .targets
            .iter()
            .zip(labels)
            .flat_map(|(target, label)| (self.of)(&target.sides).into_iter().map(move |side| (label, side)))
            .filter(|(_, (_, value))| value.is_finite())
            .peekable();
        if samples.peek().is_some() {
            out.family(self.name, self.kind, self.help);
        }
        for (label, (side, value)) in samples {
            out.sample(self.name, &[("target", label), ("side", side)], value);
        }
    }
}

fn directions(out: &mut Metrics, document: &RunDocument, labels: &[String]) {
    let name = "plumb_load_errors";
    let used: Vec<_> = document
        .targets
        .iter()
        .zip(labels)
        .flat_map(|(target, label)| target.sides.used().into_iter().map(move |used| (label, used)))
        .collect();
    if !used.is_empty() {
        out.family(name, "gauge", "Operations that failed.");
    }
    for (label, (direction, result)) in used {
        out.sample(name, &[("target", label), ("direction", direction)], result.errors as f64);
    }
}

fn histograms(out: &mut Metrics, recording: &RunRecording, labels: &[String]) {
    let name = "plumb_load_duration_seconds";
    let mut begun = false;
    for (index, label) in labels.iter().enumerate() {
        for part in Part::ALL {
            let Some(histogram) = recording.histogram(index, part) else { continue };
            if !std::mem::replace(&mut begun, true) {
                out.family(name, "histogram", "Time of the operations of a target, by what was timed.");
            }
            out.histogram(name, &[("target", label), ("operation", part.name())], histogram);
        }
    }
}
