//! The state of a live view: samples in, what is drawn out.

use super::sample::{LiveSample, Rates, rates};
use crate::terminal::Style;

/// Maximum number of points kept for each line. When they are used up, neighbours are joined, so that the
/// whole run stays in view however long it is.
const POINTS_MAX: usize = 600;

/// The live view of one load.
#[derive(Debug, Clone)]
pub struct LiveView {
    pub(super) title: String,
    pub(super) style: Style,
    /// The last look, and the rates that led to it.
    pub(super) last: Option<LiveSample>,
    pub(super) rates: Vec<Option<Rates>>,
    /// The operations per second of each target over time, in seconds: the application's and the storage's.
    pub(super) lines: Vec<[Vec<(f64, f64)>; 2]>,
    /// Number of looks that make one point.
    together: usize,
    /// The look at the start of the point that is being made.
    point_start: Option<LiveSample>,
    looks: usize,
    stopping: bool,
}

impl LiveView {
    /// Creates a view that has seen nothing. Of `style`, colour and character set matter; the size is that of
    /// each frame.
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

    /// Takes a look in. One that is not later than the last changes what is shown, but adds nothing to the
    /// chart.
    pub fn feed(&mut self, sample: LiveSample) {
        let count = sample.targets.len();
        self.lines.resize(count, [Vec::new(), Vec::new()]);
        let fresh: Vec<Option<Rates>> =
            (0..count).map(|index| rates(self.last.as_ref(), &sample, index)).collect();
        self.rates.resize(count, None);
        for (shown, fresh) in self.rates.iter_mut().zip(fresh) {
            // A look without time in between says nothing new.
            *shown = fresh.or(*shown);
        }
        self.looks += 1;
        if self.looks.is_multiple_of(self.together) {
            self.add_points(&sample);
        }
        self.last = Some(sample);
    }

    /// Says that the load was asked to stop, so that the view can say so too.
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

/// Returns two neighbouring points as one, at the time of the later.
fn join(points: &[(f64, f64)]) -> (f64, f64) {
    let at = points.last().map_or(0.0, |point| point.0);
    (at, points.iter().map(|point| point.1).sum::<f64>() / points.len().max(1) as f64)
}
