//! Advice on the size of a log: a table, with a bar for each size.

use plumb_block::{Bytes, Nanos};

use super::StatusDocument;
use super::cache::years;
use crate::document::cache::{CacheAdvice, CacheSize};
use crate::document::json::pretty;
use crate::outline::{Item, Page};
use crate::quantity::counted;
use crate::terminal::Table;

/// How long the bar of a size is that absorbs everything.
const BAR: usize = 20;

const LEGEND: &str = "Absorbed: answered as fast as by a log that never fills, or at most a tenth later than its slowest. Stalled: how \
                      much longer clients waited, all together.";

impl StatusDocument for CacheAdvice {
    fn page(&self) -> Page {
        let time = Nanos::from_secs_f64;
        let of = format!(
            "{}: {} of {} and {} in {}",
            self.recording,
            counted(self.writes, "write"),
            Bytes(self.written_bytes),
            counted(self.flushes, "flush"),
            time(self.seconds)
        );
        let uncached = format!(
            "Begun at these times again, whether those before are answered or not. Without a cache a write takes {}, {} at most; the waits \
             of all clients add up to {}.",
            time(self.uncached.write_mean),
            time(self.uncached.write_max),
            time(self.uncached.seconds)
        );
        let mut items = vec![Item::text(&of), Item::text(&uncached)];
        if self.reads > 0 {
            let reads = self.reads;
            items.push(Item::text(&format!(
                "{reads} reads are left out: what they take of the slow device is not in its rate."
            )));
        }
        items.push(Item::Table(sizes(&self.sizes)));
        let advised = Bytes(self.advised_size);
        items.push(Item::text(&format!("{advised} of log absorbs the bursts, and not much less does.")));
        items.extend(wear(self).as_deref().map(Item::text));
        items.push(Item::text(LEGEND));
        Page::plain("plumb cache advise", items)
    }

    fn to_json(&self) -> serde_json::Result<String> {
        pretty(self)
    }
}

/// Describes what the advised log is written, and how long it lasts.
fn wear(advice: &CacheAdvice) -> Option<String> {
    let advised = advice.sizes.iter().find(|tried| tried.size == advice.advised_size)?;
    let a_day = advised.log_written_bytes as f64 * 86_400.0 / advice.seconds.max(1e-9);
    let lasts =
        advised.log_lifetime.map(|life| format!(": the endurance that was given lasts {}", years(life)));
    Some(format!(
        "{} were written to it; if that goes on as in the recording, {} a day{}.",
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
        .right("speed-up", |tried| format!("{:.1}x", tried.speed_up))
        .right("p99", |tried| time(tried.waiting.write_p99))
        .right("max", |tried| time(tried.waiting.write_max))
        .table()
}
