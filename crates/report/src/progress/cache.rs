//! Activity of a cache, followed to its end.

use std::sync::atomic::{AtomicBool, Ordering};

use plumb_block::wait::LOOK_EVERY;
use plumb_block::{Bytes, Nanos, RealClock};
use plumb_caches::{CacheStatus, LaidOut};
use plumb_text::shell_word;

use super::bar::left;
use super::lines::ProgressLines;
use crate::status::not_serving;
use crate::streams;

/// Error of an activity that does not reach its end.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct CacheGone(String);

/// Activity of a cache.
pub struct CacheActivity<'a, E> {
    /// Reads the present status; `None` if the cache is no longer served.
    pub look: &'a dyn Fn() -> Result<Option<CacheStatus>, E>,
    /// Test whether the activity is over.
    pub is_over: &'a dyn Fn(&CacheStatus) -> bool,
    /// Description of the activity after the name of the cache, from its status and the bytes that only the
    /// log held at first.
    pub what: &'a dyn Fn(&CacheStatus, Bytes) -> String,
}

impl<E: From<CacheGone>> CacheActivity<'_, E> {
    /// Follows the activity to its end and returns the final status. Returns `None` after an interruption.
    ///
    /// # Errors
    /// If the status cannot be read, or the cache is no longer served.
    pub fn end(&self, mut now: CacheStatus, interrupted: &AtomicBool) -> Result<Option<CacheStatus>, E> {
        let (name, first) = (now.name.clone(), now.only_in_log());
        let mut lines = ProgressLines::later();
        while !(self.is_over)(&now) {
            if let Some(why) = now.state.as_deref().filter(|state| *state != "serving") {
                return Err(CacheGone(format!("{name}: {}", not_serving(&name, why))).into());
            }
            let what = (self.what)(&now, first);
            if interrupted.load(Ordering::Acquire) {
                streams::say(&format!("plumb: interrupted: {name} {what}; {}", how_to_go_on(&now)));
                return Ok(None);
            }
            lines.say(&format!("{name} {what}"));
            std::thread::sleep(LOOK_EVERY.into());
            now = (self.look)()?.ok_or_else(|| {
                CacheGone(format!(
                    "the server of {name} has ended: serve it again, then the same command continues"
                ))
            })?;
        }
        Ok(Some(now))
    }
}

/// Describes how the activity continues once it is no longer followed.
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

/// Returns the progress of destaging a log that held `first` bytes at first.
pub fn writing_back(now: &CacheStatus, first: Bytes) -> String {
    let left = now.only_in_log();
    let done = Bytes(first.0.saturating_sub(left.0));
    let done = if done.0 > 0 { format!("has written back {done}, and ") } else { String::new() };
    let eta = now.drain_eta.map(|eta| format!(", which takes about {}", Nanos::from_secs_f64(eta)));
    let why = now.write_back_error.as_ref().map(|why| format!("; it makes no progress: {why}"));
    format!("{done}has {left} to write back{}{}", eta.unwrap_or_default(), why.unwrap_or_default())
}

/// Returns the progress of a served cache in laying out a file, since that was ordered.
pub fn laying_out(now: &CacheStatus, ordered: RealClock) -> String {
    let Some(LaidOut { path, done_bytes, size_bytes }) = &now.laying_out else { return String::new() };
    let left = left(ordered, *done_bytes as f64 / (*size_bytes).max(1) as f64, "");
    format!("is laying out {path}: {} of {}{left}", Bytes(*done_bytes), Bytes(*size_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interruption_says_how_far_it_came_and_how_it_goes_on() {
        let mut now =
            CacheStatus { name: "db".to_owned(), dirty_bytes: Some(3 << 20), ..CacheStatus::default() };
        now.backing.path = "/dev/slow".to_owned();
        assert_eq!(writing_back(&now, Bytes::mib(8)), "has written back 5 MiB, and has 3 MiB to write back");
        assert_eq!(writing_back(&now, Bytes::mib(3)), "has 3 MiB to write back");
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
