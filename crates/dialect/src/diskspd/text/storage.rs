//! Counters of the devices below beside those of the application. A large difference means that a cache was
//! measured.

use plumb_block::Nanos;
use plumb_load::{LoadOutcome, SpanResult};

use super::super::measured::{is_interrupted, mib_per_second, ms, per_second};
use super::super::size::shown;
use super::page::{Page, STARS};

const HEADING: &str =
    "side        |        reads |       writes |   flushes |    MiB/s   |  I/O per s | mean I/O   |  file";

/// Figures of the application or of the devices.
struct Figures {
    reads: u64,
    writes: u64,
    bytes: u64,
    flushes: Option<u64>,
}

pub(super) fn section(results: &[SpanResult], page: &mut Page) {
    page.line(&format!("\n\nStorage: what the devices beneath were handed\n{STARS}"));
    for (number, result) in results.iter().enumerate().filter(|(_, result)| !is_interrupted(result)) {
        page.line(&format!("\ntimespan {}", number + 1));
        page.line(HEADING);
        page.line(&"-".repeat(HEADING.len()));
        for (place, target) in result.targets.iter().enumerate() {
            let outcome = result.of_target(place);
            let name = &target.name;
            page.line(&format!(
                "application | {} | {name}",
                Figures::from_outcome(&outcome).shown(result.window)
            ));
            page.line(&match &target.storage {
                Ok(side) => {
                    let figures = Figures {
                        reads: side.reads,
                        writes: side.writes,
                        bytes: side.read_bytes + side.write_bytes,
                        flushes: side.flushes,
                    };
                    format!("storage     | {} | {name}", figures.shown(result.window))
                }
                Err(reason) => format!("storage     | not known: {reason} | {name}"),
            });
            remarks(&outcome, page);
        }
    }
}

/// Writes remarks about failures, and about I/Os that a throttle started late.
fn remarks(outcome: &LoadOutcome, page: &mut Page) {
    let failed = outcome.read.failures() + outcome.write.failures() + outcome.flush.failures();
    if failed > 0 {
        page.line(&format!("            | {failed} I/Os failed"));
    }
    if outcome.late_starts + outcome.unstarted > 0 {
        page.line(&format!(
            "            | {} I/Os started later than the throttle meant them to, by {:.3} ms at most; \
             {} never did",
            outcome.late_starts,
            ms(outcome.backlog_max.as_secs_f64()),
            outcome.unstarted,
        ));
    }
}

impl Figures {
    fn from_outcome(outcome: &LoadOutcome) -> Self {
        Self {
            reads: outcome.read.operations(),
            writes: outcome.write.operations(),
            bytes: outcome.read.bytes.0 + outcome.write.bytes.0,
            flushes: Some(outcome.flush.operations()),
        }
    }

    fn shown(&self, window: Nanos) -> String {
        let operations = self.reads + self.writes;
        let mean = self.bytes.checked_div(operations).map_or_else(|| "none".to_owned(), shown);
        let flushes = self.flushes.map_or_else(|| "unknown".to_owned(), |flushes| flushes.to_string());
        format!(
            "{:>12} | {:>12} | {flushes:>9} | {:>10.2} | {:>10.2} | {mean:>10}",
            self.reads,
            self.writes,
            mib_per_second(self.bytes, window),
            per_second(operations, window),
        )
    }
}
