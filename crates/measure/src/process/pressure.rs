//! Pressure stall information: how long tasks stood still for want of a resource, from /proc/pressure/{cpu,io,memory}.

use plumb_block::Nanos;

/// One file of /proc/pressure.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Pressure {
    /// At least one task stood still.
    pub some: Stall,
    /// All tasks that were not idle stood still; zero in the processor's file of kernels before 5.13.
    pub full: Stall,
}

/// How much was lost.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Stall {
    /// Share of the last ten seconds, 0 to 1.
    pub recent: f64,
    /// Since boot.
    pub total: Nanos,
}

impl Pressure {
    /// From the text of the file; `None` if it has no well-formed `some` line.
    pub fn parse(text: &str) -> Option<Self> {
        let stall = |kind: &str| text.lines().find_map(|line| Stall::parse(line.strip_prefix(kind)?));
        Some(Self { some: stall("some ")?, full: stall("full ").unwrap_or_default() })
    }
}

impl Stall {
    fn parse(fields: &str) -> Option<Self> {
        let value =
            |name: &str| fields.split(' ').find_map(|field| field.strip_prefix(name)?.strip_prefix('='));
        let percent: f64 = value("avg10")?.parse().ok()?;
        let total: u64 = value("total")?.trim_end().parse().ok()?;
        Some(Self { recent: percent / 100.0, total: Nanos::micros(total) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_lines_and_old_kernels() {
        let text = "some avg10=12.50 avg60=1.00 avg300=0.10 total=2500\nfull avg10=1.00 avg60=0.00 avg300=0.00 total=7\n";
        let pressure = Pressure::parse(text).unwrap();
        assert_eq!(pressure.some, Stall { recent: 0.125, total: Nanos::micros(2500) });
        assert_eq!(pressure.full, Stall { recent: 0.01, total: Nanos::micros(7) });
        assert_eq!(Pressure::parse(text.lines().next().unwrap()).unwrap().full, Stall::default());
        assert_eq!(Pressure::parse("some avg10=x total=1"), None);
        assert_eq!(Pressure::parse(""), None);
    }
}
