//! Comparison of figures: simulated, published, and the source.

use serde::Serialize;

/// One figure of a drive.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FigureRow {
    /// Name of the measurement.
    pub name: &'static str,
    /// Unit: `ms`, `IOPS`, `MB/s`, or `times` for a ratio of two figures.
    pub unit: &'static str,
    /// Simulated value.
    pub simulated: f64,
    /// Published value, if any.
    pub published: Option<f64>,
    /// Relative deviation of the simulation from the published value: 0.05 is 5 % above.
    pub deviation: Option<f64>,
    /// Source of the published value.
    pub source: Option<String>,
}

impl FigureRow {
    /// Computes the deviation from the published value.
    pub(super) fn compared(self) -> Self {
        Self { deviation: self.published.map(|published| self.simulated / published - 1.0), ..self }
    }
}
