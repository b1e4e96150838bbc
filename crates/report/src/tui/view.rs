//! State of a live view.

use super::sample::{LiveSample, Rates, rates};
use crate::terminal::Style;

/// Maximum number of points of each line. When it is reached, neighbours are merged, so that the whole run
/// stays visible.
const POINTS_MAX: usize = 600;

/// Live view of a load.
#[derive(Debug, Clone)]
pub struct LiveView {
    pub(super) title: String,
    pub(super) style: Style,
    /// Last sample, and the rates up to it.
    pub(super) last: Option<LiveSample>,
    pub(super) rates: Vec<Option<Rates>>,
    /// Operations per second of each target over time, in seconds: of the application and of the storage.
    pub(super) lines: Vec<[Vec<(f64, f64)>; 2]>,
    /// Number of samples per point.
    together: usize,
    /// Sample at the start of the current point.
    point_start: Option<LiveSample>,
    looks: usize,
    stopping: bool,
}

impl LiveView {
    /// Creates an empty view. Colour and character set come from `style`; the size is that of each frame.
    pub fn new(title: impl Into<String>, style: Style) -> Self {
        Self {
            title: title.into(),
            style,
            last: None,
            rates: Vec::new(),
            lines: Vec::new(),
            together: 1,
            point_start: None,
            looks: 0,
            stopping: false,
        }
    }

    /// Adds a sample. One that is not later than the last is shown, but adds nothing to the chart.
    pub fn feed(&mut self, sample: LiveSample) {
        let count = sample.targets.len();
        self.lines.resize(count, [Vec::new(), Vec::new()]);
        let fresh: Vec<Option<Rates>> =
            (0..count).map(|index| rates(self.last.as_ref(), &sample, index)).collect();
        self.rates.resize(count, None);
        for (shown, fresh) in self.rates.iter_mut().zip(fresh) {
            // Without time since the last sample there are no new rates.
            *shown = fresh.or(*shown);
        }
        self.looks += 1;
        if self.looks.is_multiple_of(self.together) {
            self.add_points(&sample);
        }
        self.last = Some(sample);
    }

    /// Notes that the load was asked to stop, which the view shows.
    pub fn stopping(&mut self) {
        self.stopping = true;
    }

    /// Returns the current phase, in a word or two.
    pub(super) fn phase(&self) -> &'static str {
        match &self.last {
            _ if self.stopping => "stopping",
            Some(sample) => sample.phase.words(),
            None => "starting",
        }
    }

    fn add_points(&mut self, sample: &LiveSample) {
        for (index, line) in self.lines.iter_mut().enumerate() {
            if let Some(rates) = rates(self.point_start.as_ref(), sample, index) {
                line[0].push((sample.elapsed, rates.iops));
                line[1].extend(rates.storage.map(|storage| (sample.elapsed, storage.iops)));
            }
        }
        self.point_start = Some(sample.clone());
        if self.lines.iter().flatten().any(|line| line.len() >= POINTS_MAX) {
            self.together = self.together.saturating_mul(2);
            for line in self.lines.iter_mut().flatten() {
                *line = line.chunks(2).map(join).collect();
            }
        }
    }
}

/// Merges two neighbouring points, at the time of the later one.
fn join(points: &[(f64, f64)]) -> (f64, f64) {
    let at = points.last().map_or(0.0, |point| point.0);
    (at, points.iter().map(|point| point.1).sum::<f64>() / points.len().max(1) as f64)
}
