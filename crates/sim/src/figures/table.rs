//! Figures side by side: simulated, published, and where from.

use serde::Serialize;

/// One figure of a drive.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FigureRow {
    /// Name of what was done.
    pub name: &'static str,
    /// Unit of the figure: `ms`, `IOPS`, `MB/s`, or `times` for one figure over another.
    pub unit: &'static str,
    /// Value that the simulation gives.
    pub simulated: f64,
    /// Value that is published; `None` if none is.
    pub published: Option<f64>,
    /// Deviation of the simulation from what is published: 0.05 is 5 % above.
    pub deviation: Option<f64>,
    /// Where that is published.
    pub source: Option<String>,
}

impl FigureRow {
    /// Compares what is simulated with what is published.
    pub(super) fn compared(self) -> Self {
        Self { deviation: self.published.map(|published| self.simulated / published - 1.0), ..self }
    }
}
