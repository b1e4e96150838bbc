//! Display of what a cache does over time, followed until it is over.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use plumb_block::{Bytes, Nanos, shell_word};
use plumb_report::status::not_serving;
use plumb_targets::cache::CacheStatus;

use crate::exit::{Exit, Refusal};
use crate::progress_lines::ProgressLines;
use crate::terminal;

/// How often a cache is asked how far it is.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Activity of a cache that is followed.
pub(super) struct CacheActivity<'a> {
    /// Reads the present status; `None` if the cache is no longer served.
    pub(super) look: &'a dyn Fn() -> anyhow::Result<Option<CacheStatus>>,
    /// Test whether the activity is over.
    pub(super) is_over: &'a dyn Fn(&CacheStatus) -> bool,
    /// Description of what the cache does, in words that follow its name, from its status and how much only
    /// the log held at first.
    pub(super) what: &'a dyn Fn(&CacheStatus, Bytes) -> String,
}

impl CacheActivity<'_> {
    /// Looks until it is over: how the cache is then. `None` if somebody interrupts.
    pub(super) fn end(
        &self,
        mut now: CacheStatus,
        interrupted: &AtomicBool,
    ) -> anyhow::Result<Option<CacheStatus>> {
        let (name, first) = (now.name.clone(), now.only_in_log());
        let mut lines = ProgressLines::later();
        while !(self.is_over)(&now) {
            if let Some(why) = now.state.as_deref().filter(|state| *state != "serving") {
                return Err(Refusal::new(Exit::Failed, format!("{name}: {}", not_serving(&name, why))).into());
            }
            let what = (self.what)(&now, first);
            if interrupted.load(Ordering::Acquire) {
                terminal::say(&format!("plumb: interrupted: {name} {what}; {}", how_to_go_on(&now)));
                return Ok(None);
            }
            lines.say(&format!("{name} {what}"));
            std::thread::sleep(LOOK_EVERY);
            let Some(next) = (self.look)()? else {
                let message =
                    format!("{name} is no longer served: serve it again, then the same command continues");
                return Err(Refusal::new(Exit::Failed, message).into());
            };
            now = next;
        }
        Ok(Some(now))
    }
}

/// Says what becomes of the activity once nobody follows it any more.
fn how_to_go_on(now: &CacheStatus) -> String {
    let CacheStatus { name, backing, .. } = now;
    match now.served {
        true => format!(
            "its server continues: `plumb cache status {}` shows the progress, and the same command waits \
             for it again",
            shell_word(name)
        ),
        false => format!(
            "the same command continues from there, or serve the cache: until it is done, {} needs it",
            backing.path
        ),
    }
}

/// Returns how far writing back is, of a log that held so much at first.
pub(super) fn left(now: &CacheStatus, first: Bytes) -> String {
    let left = now.only_in_log();
    let done = Bytes(first.0.saturating_sub(left.0));
    let done = if done.0 > 0 { format!("has written back {done}, and ") } else { String::new() };
    let eta = now.drain_eta.map(|eta| format!(", which takes about {}", Nanos::from_secs_f64(eta)));
    let why = now.write_back_error.as_ref().map(|why| format!("; it makes no progress: {why}"));
    format!("{done}has {left} to write back{}{}", eta.unwrap_or_default(), why.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interruption_says_how_far_it_came_and_how_it_goes_on() {
        let mut now =
            CacheStatus { name: "db".to_owned(), dirty_bytes: Some(3 << 20), ..CacheStatus::default() };
        now.backing.path = "/dev/slow".to_owned();
        assert_eq!(left(&now, Bytes::mib(8)), "has written back 5 MiB, and has 3 MiB to write back");
        assert_eq!(left(&now, Bytes::mib(3)), "has 3 MiB to write back");
        assert!(
            how_to_go_on(&now).contains("the same command continues")
                && how_to_go_on(&now).contains("/dev/slow")
        );
        let served = CacheStatus { served: true, ..now };
        assert!(
            how_to_go_on(&served).contains("server continues") && how_to_go_on(&served).contains("status db")
        );
    }
}
