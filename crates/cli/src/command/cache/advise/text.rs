//! Advice for people: a table, with a bar for each size.

use plumb_block::{Bytes, Nanos};

use super::{Advice, Tried};
use crate::terminal::counted;

/// How long the bar of a size is that absorbs everything.
const BAR: usize = 20;

impl Advice {
    pub(super) fn text(&self) -> String {
        let time = Nanos::from_secs_f64;
        let Self { recording, writes, uncached, .. } = self;
        let head = format!(
            "{recording}: {} of {} and {} in {}\nBegun at these times again, whether those before are answered or not. Without a cache clients \
             wait {} for them, {} for a write, {} at most.\n",
            counted(*writes, "write"),
            Bytes(self.written_bytes),
            counted(self.flushes, "flush"),
            time(self.seconds),
            time(uncached.seconds),
            time(uncached.write_mean),
            time(uncached.write_max),
        );
        let reads = match self.reads {
            0 => String::new(),
            reads => {
                format!("{reads} reads are left out: what they take of the slow device is not in its rate.\n")
            }
        };
        let mut lines = vec![format!(
            "{:>10}  {:>8}  {:BAR$}  {:>10}  {:>9}  {:>10}  {:>10}",
            "log", "absorbed", "", "stalled", "speed-up", "p99", "max"
        )];
        lines.extend(self.sizes.iter().map(line));
        let advice =
            format!("{} of log absorbs the bursts, and not much less does.", Bytes(self.advised_size));
        format!(
            "{head}{reads}{}\n{advice}\nAbsorbed: answered as fast as by a log that never fills, or at most a tenth later than its slowest. Stalled: how much longer clients waited, all \
             together.\n",
            lines.join("\n")
        )
    }
}

fn line(tried: &Tried) -> String {
    let Tried { size, absorbed, stall_seconds, speed_up, waiting, .. } = tried;
    let bar = "#".repeat((absorbed * BAR as f64).round() as usize);
    format!(
        "{:>10}  {:>7.1}%  {bar:BAR$}  {:>10}  {:>8.1}x  {:>10}  {:>10}",
        Bytes(*size).to_string(),
        absorbed * 100.0,
        Nanos::from_secs_f64(*stall_seconds).to_string(),
        speed_up,
        Nanos::from_secs_f64(waiting.write_p99).to_string(),
        Nanos::from_secs_f64(waiting.write_max).to_string(),
    )
}
