//! Figures side by side: simulated, published, and where from.

/// One figure of a drive.
#[derive(Debug, Clone, PartialEq)]
pub struct FigureRow {
    /// Name of what was done.
    pub name: &'static str,
    /// Unit of the figure: `ms`, `IOPS`, `MB/s`, or `times` for one figure over another.
    pub unit: &'static str,
    /// Value that the simulation gives.
    pub simulated: f64,
    /// Value that is published; `None` if none is.
    pub published: Option<f64>,
    /// Where that is published.
    pub source: Option<String>,
}

impl FigureRow {
    /// Returns how far the simulation is off what is published: 0.05 is 5 % above.
    pub fn deviation(&self) -> Option<f64> {
        self.published.map(|published| self.simulated / published - 1.0)
    }
}
