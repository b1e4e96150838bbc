//! Latencies: means, deviations and percentiles.

use plumb_load::{Direction, LoadOutcome};

use super::super::measured::{Ranks, Side, ms, three_decimals};
use super::super::xml::XmlWriter;

/// Writes the latencies of all threads and targets.
pub(super) fn percentiles(outcome: &LoadOutcome, writer: &mut XmlWriter) {
    let sides = [Side::Read, Side::Write, Side::Total].map(|side| side.direction(outcome));
    let buckets = sides.each_ref().map(|direction| direction.latency.bins().count());
    writer.open_with(
        "Latency",
        &format!(
            "ReadHistoBuckets=\"{}\" WriteHistoBuckets=\"{}\" TotalHistoBuckets=\"{}\"",
            buckets[0], buckets[1], buckets[2]
        ),
    );
    let names = [
        ("AverageReadMilliseconds", "ReadLatencyStdev"),
        ("AverageWriteMilliseconds", "WriteLatencyStdev"),
        ("AverageTotalMilliseconds", "LatencyStdev"),
    ];
    for (direction, (mean, deviation)) in sides.iter().zip(names) {
        moments(direction, mean, deviation, writer);
    }
    let ranks = sides.each_ref().map(|direction| Ranks::from_histogram(&direction.latency));
    for (percentile, parts) in rows() {
        writer.open("Bucket");
        writer.value("Percentile", percentile);
        let names = ["ReadMilliseconds", "WriteMilliseconds", "TotalMilliseconds"];
        for (ranks, name) in ranks.iter().zip(names) {
            if let Some(ms) = ranks.at(parts) {
                writer.value(name, three_decimals(ms));
            }
        }
        writer.close("Bucket");
    }
    writer.close("Latency");
}

/// Writes the latencies of a thread on a target.
pub(super) fn of_target(outcome: &LoadOutcome, writer: &mut XmlWriter) {
    let names = [
        (Side::Read, "AverageReadLatencyMilliseconds", "ReadLatencyStdev"),
        (Side::Write, "AverageWriteLatencyMilliseconds", "WriteLatencyStdev"),
        (Side::Total, "AverageLatencyMilliseconds", "LatencyStdev"),
    ];
    for (side, mean, deviation) in names {
        moments(&side.direction(outcome), mean, deviation, writer);
    }
}

fn moments(direction: &Direction, mean: &str, deviation: &str, writer: &mut XmlWriter) {
    let latency = &direction.latency;
    if let (Some(average), Some(std)) = (latency.mean(), latency.std()) {
        writer.value(mean, three_decimals(ms(average)));
        writer.value(deviation, three_decimals(ms(std)));
    }
}

/// Returns the percentiles as names and as parts of 1,000,000,000: 0 to 99, 99.9 to 99.9999999,
/// and 100.
fn rows() -> Vec<(String, u64)> {
    let whole = (0..100).map(|percent| (percent.to_string(), percent * 10_000_000));
    let nines = (1..=7_u32).map(|nines| {
        let name = format!("99.{}", "9".repeat(nines as usize));
        (name, 1_000_000_000 - 10_u64.pow(7 - nines))
    });
    whole.chain(nines).chain([("100".to_owned(), 1_000_000_000)]).collect()
}

#[cfg(test)]
mod tests {
    use super::rows;

    #[test]
    fn percentiles_are_those_of_diskspd() {
        let rows = rows();
        assert_eq!(rows.len(), 108);
        assert_eq!(rows[25], ("25".to_owned(), 250_000_000));
        assert_eq!(rows[100], ("99.9".to_owned(), 999_000_000));
        assert_eq!(rows[106], ("99.9999999".to_owned(), 999_999_999));
    }
}
