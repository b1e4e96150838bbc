//! Advice on the size of a log: a table, with a bar for each size.

use plumb_block::{Bytes, Nanos};

use super::Sections;
use super::cache::years;
use crate::document::cache::{CacheAdvice, CacheSize};
use crate::outline::{Item, Page};
use crate::quantity::{counted, rate};
use crate::terminal::Table;

/// Length of the bar of a size that absorbs everything.
const BAR: usize = 20;

const LEGEND: &str = "Absorbed: share of the writes that took at most a tenth longer than the slowest write to a log that never fills. \
                      Stalled: additional time that all clients together waited.";

impl Sections for CacheAdvice {
    const TITLE: &str = "plumb cache advise";

    fn add_to(&self, page: &mut Page) {
        let time = Nanos::from_secs_f64;
        let of = format!(
            "{}: {} ({}) and {}{}",
            self.recording,
            counted(self.writes, "write"),
            Bytes(self.written_bytes),
            counted(self.flushes, "flush"),
            if self.seconds > 0.0 {
                format!(" in {}", time(self.seconds))
            } else {
                ", without times".to_owned()
            }
        );
        let uncached = format!(
            "Each write was replayed at its recorded time, even if earlier ones were not answered. Without a cache a write takes {} on \
             average and {} at most; all clients together wait {}.",
            time(self.uncached.write_mean),
            time(self.uncached.write_max),
            time(self.uncached.seconds)
        );
        let advised = Bytes(self.advised_size);
        let advice = format!("A log of {advised} absorbs the bursts; a much smaller one does not.");
        let mut items = vec![Item::text(&advice), Item::text(&of), Item::text(&uncached)];
        if self.reads > 0 {
            let reads = self.reads;
            items.push(Item::text(&format!(
                "{reads} reads are left out: the time that they take of the slow device is not part of its rate."
            )));
        }
        items.push(Item::Table(sizes(&self.sizes)));
        items.extend(wear(self).as_deref().map(Item::text));
        items.push(Item::text(LEGEND));
        page.add("", items);
    }
}

/// Describes the writes to the advised log, and its lifetime.
fn wear(advice: &CacheAdvice) -> Option<String> {
    let advised = advice.sizes.iter().find(|tried| tried.size == advice.advised_size)?;
    let a_day = advised.log_written_bytes as f64 * 86_400.0 / advice.seconds.max(1e-9);
    let lasts =
        advised.log_lifetime.map(|life| format!(": the endurance that was given lasts {}", years(life)));
    Some(format!(
        "{} were written to it; at the rate of the recording, {} per day{}.",
        Bytes(advised.log_written_bytes),
        Bytes(a_day as u64),
        lasts.unwrap_or_default()
    ))
}

fn sizes(sizes: &[CacheSize]) -> Table {
    let time = |seconds| Nanos::from_secs_f64(seconds).to_string();
    Table::for_rows(sizes)
        .right("log", |tried| Bytes(tried.size).to_string())
        .right("absorbed", |tried| format!("{:.1}%", tried.absorbed * 100.0))
        .left("", |tried| "#".repeat((tried.absorbed * BAR as f64).round() as usize))
        .right("stalled", |tried| time(tried.stall_seconds))
        .right("speed-up", |tried| format!("{}x", rate(tried.speed_up)))
        .right("p99", |tried| time(tried.waiting.write_p99))
        .right("max", |tried| time(tried.waiting.write_max))
        .table()
}
