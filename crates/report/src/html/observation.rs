//! Page of an observation: requests over time, and the tables of the other formats.

use askama::Template;
use plumb_text::printable;

use super::chart_data::{Chart, Line, STEPS_MAX};
use super::frame::Frame;
use super::sections::{SectionView, lines, sections};
use super::style::STYLES;
use crate::document::ObservationDocument;
use crate::document::observation::ObservedDevice;
use crate::observation;
use crate::quantity::rate;

/// Content of the page.
#[derive(Template)]
#[template(path = "observation.html")]
pub(super) struct ObservationPage {
    frame: Frame,
    charts: Vec<Chart>,
    sections: Vec<SectionView>,
    workload: String,
}

impl ObservationPage {
    /// Returns the page of `document`.
    pub(super) fn new(document: &ObservationDocument) -> Self {
        let mut outline = observation::outline(document);
        // The workload has a part of its own.
        outline.sections.retain(|of| !of.is_detail);
        let sections = sections(&mut outline);
        let charts: Vec<Chart> = over_time(document).into_iter().collect();
        let frame = Frame::new("plumb observe", outline, None).drawing(&charts);
        Self { frame, charts, sections, workload: lines(&document.workload) }
    }
}

/// Draws the requests per second of each device, if there are any.
fn over_time(document: &ObservationDocument) -> Option<Chart> {
    let lines: Vec<Line> =
        document.devices.iter().take(STYLES).enumerate().map(|(style, device)| line(style, device)).collect();
    if lines.iter().all(|line| line.x.len() < 2) {
        return None;
    }
    let most = |line: &Line| {
        let highest = line.y.iter().flatten().copied().fold(0.0, f64::max);
        format!("{} up to {}", line.name, rate(highest))
    };
    let ranges = lines.iter().map(most).collect::<Vec<_>>().join(", ");
    let (anchor, name) = ("observed".to_owned(), "Requests over time".to_owned());
    Some(Chart::of_rates(anchor, name, "requests per second", lines, &ranges))
}

fn line(style: usize, device: &ObservedDevice) -> Line {
    let parts: Vec<_> = device.over_time.chunks(device.over_time.len().div_ceil(STEPS_MAX).max(1)).collect();
    let per_second = |part: &&[crate::document::observation::OverTime]| {
        let (ios, seconds) =
            part.iter().fold((0, 0.0), |(ios, seconds), of| (ios + of.ios, seconds + of.seconds));
        (seconds > 0.0).then(|| ios as f64 / seconds)
    };
    Line {
        name: printable(&device.name),
        style,
        x: parts.iter().filter_map(|part| Some(part.first()?.at)).collect(),
        y: parts.iter().map(per_second).collect(),
    }
}
