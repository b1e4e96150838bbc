//! Figures side by side: simulated, published, and where from.

use std::fmt;

/// What a figure counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FigureUnit {
    /// Milliseconds.
    Milliseconds,
    /// Operations per second.
    Iops,
    /// Millions of bytes per second.
    MegabytesPerSecond,
    /// One figure over another.
    Ratio,
}

impl fmt::Display for FigureUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Milliseconds => "ms",
            Self::Iops => "IOPS",
            Self::MegabytesPerSecond => "MB/s",
            Self::Ratio => "times",
        })
    }
}

/// One figure of a drive.
#[derive(Debug, Clone, PartialEq)]
pub struct FigureRow {
    /// What was done.
    pub name: &'static str,
    /// What it counts.
    pub unit: FigureUnit,
    /// What the simulation gives.
    pub simulated: f64,
    /// What is published.
    pub published: Option<f64>,
    /// Where that is published.
    pub source: Option<String>,
}

impl FigureRow {
    /// How far the simulation is off what is published: 0.05 is 5 % above.
    pub fn deviation(&self) -> Option<f64> {
        self.published.map(|published| self.simulated / published - 1.0)
    }
}

/// The figures of a drive.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FigureTable {
    /// One a line.
    pub rows: Vec<FigureRow>,
}

/// Columns of plain text.
impl fmt::Display for FigureTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<44} {:>10} {:>10} {:>9}  source", "figure", "simulated", "published", "deviation")?;
        for row in &self.rows {
            let published =
                row.published.map_or_else(|| "-".to_owned(), |published| format!("{published:.2}"));
            let deviation = row
                .deviation()
                .map_or_else(|| "-".to_owned(), |deviation| format!("{:+.1} %", deviation * 100.0));
            let name = format!("{}, {}", row.name, row.unit);
            let source = row.source.as_deref().unwrap_or("-");
            writeln!(f, "{name:<44} {:>10.2} {published:>10} {deviation:>9}  {source}", row.simulated)?;
        }
        Ok(())
    }
}
