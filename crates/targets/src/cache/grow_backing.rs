//! A backing device that has grown, with all of it cached from then on.
//!
//! ```text
//!   marker at the new end, with the new size ──► superblocks with the new size ──► the marker at the old end goes
//! ```
//!
//! Each step is durable before the next. After a crash the larger of two markers counts, and the log takes
//! its size: see `Options::grows_backing` of plumb-cache. Nothing beyond the old end is in the log before its
//! superblocks name the new size, and nobody is served before the old marker, which lies within the cached
//! device by then, is gone.

use plumb_block::{Time, shell_word};

use super::config::CacheConfig;
use super::marker::Marker;
use super::member::Spot;
use super::named::{NamedCache, Opening};
use crate::error::{Error, Result};

/// Has a cache that is not served take all of its backing device. Returns it, opened.
///
/// # Errors
/// The refusal: the device has not grown, its new end is in use, or the cache cannot be opened. The cache is
/// as it was then.
pub fn grow_backing(config: CacheConfig, time: &Time) -> Result<NamedCache> {
    let before = NamedCache::open(config, Opening::STRICT, time)?;
    before.stop().map_err(|error| Error::device(&before.shown(), &error))?;
    before.mark_all_of_it()?;
    let config = before.config().clone();
    drop(before);
    NamedCache::open(CacheConfig { stopped: None, ..config }, Opening::STRICT, time)
}

impl NamedCache {
    /// Marks the backing device of a cache that has stopped as cached up to its present end.
    fn mark_all_of_it(&self) -> Result<()> {
        let (marker, spot) = self.marking.last();
        let size = self.backing.cached(spot.place()).info().size;
        if size <= marker.size {
            let found = format!("it has not grown: all of its {} are already cached", marker.size);
            let remedy = format!(
                "make it larger first (lvextend, truncate, a larger disk), then `plumb cache grow {} --backing`",
                shell_word(&self.config().name)
            );
            return Err(Error::usage(&self.backing.shown, found, remedy));
        }
        let new = match spot {
            Spot::Attribute => Spot::Attribute,
            Spot::Block(_) => self.backing.spot_of_new()?,
        };
        let mut larger = Marker { size, ..marker };
        // The witnesses of a larger device are others.
        larger.state(Default::default());
        self.backing.set_marker(new, Some(&larger))
    }

    /// Takes away the markers of this cache that lie within the cached device: it has grown.
    pub(super) fn clear_left_markers(&self) -> Result<()> {
        let (last, _) = self.marking.last();
        let is_within = |(marker, spot): &(Marker, Spot)| {
            matches!(spot, Spot::Block(at) if *at < last.size.0) && marker.cache == last.cache
        };
        let left = self.backing.markers()?.into_iter().filter(is_within);
        left.into_iter().try_for_each(|(_, spot)| self.backing.set_marker(spot, None))
    }
}
