//! Growth of a cache to the new size of its backing device.
//!
//! ```text
//!   marker without witnesses ──► marker at the new end, with the new size ──► the marker at the old end goes
//!                                                     ──► superblocks with the new size; clients may use it
//! ```
//!
//! Each step is durable before the next. After a crash the larger of two markers is valid, and the log takes
//! its size: see `Options::grows_backing` of plumb-cache. The log holds nothing beyond the old end until the
//! old marker, which is then within the cached device, is removed.

use std::sync::Arc;

use plumb_block::{Bytes, ErrorKind};
use plumb_guard::Result;
use plumb_guard::cache::config::{self, CacheConfig};
use plumb_guard::cache::marker::Marker;

use crate::member::Spot;
use crate::named::{NamedCache, refused};
use crate::witness;

impl NamedCache {
    /// Extends the cache to all of the backing device; does nothing if that has not grown.
    ///
    /// # Errors
    /// If the new end of the device is in use, or the log is no longer written. The cache then keeps its
    /// size.
    pub fn grow_backing(&self) -> Result<()> {
        let (shown, (marker, spot)) = (self.shown(), self.marking.last());
        let Some((size, spot)) = self.new_extent(marker.size, spot)? else { return Ok(()) };
        let room = CacheConfig::reserve(&config::directory())?;
        let cached = self.backing.part(size);
        let (witnesses, larger) = (witness::ranges(&*cached), Arc::clone(&cached));
        let mark = || {
            self.marking.grow(spot, larger).map_err(|error| {
                let why = error.to_string();
                plumb_block::Error::new(ErrorKind::Invalid, "mark the backing device of", &shown).because(why)
            })
        };
        self.device.grow_backing(cached, witnesses, mark).map_err(|error| refused(&shown, &error))?;
        let mut config = self.config();
        config.backing_size = Some(size.0);
        drop(room);
        config.save(&config::directory())
    }

    /// Returns the size that can be cached now, and the place of its marker; `None` if the size is still
    /// `before`.
    fn new_extent(&self, before: Bytes, spot: Spot) -> Result<Option<(Bytes, Spot)>> {
        let size = self.backing.cached(spot.place()).info().size;
        self.backing.is_not_smaller(size, before)?;
        if size == before {
            return Ok(None);
        }
        let spot = match spot {
            Spot::Attribute => spot,
            Spot::Block(_) => self.backing.spot_of_new()?,
        };
        Ok(Some((size, spot)))
    }

    /// Removes the markers of this cache that lie within the cached device, left by an interrupted growth.
    pub(crate) fn clear_left_markers(&self) -> Result<()> {
        let (last, _) = self.marking.last();
        let is_within = |(marker, spot): &(Marker, Spot)| {
            matches!(spot, Spot::Block(at) if *at < last.size.0) && marker.cache == last.cache
        };
        let left = self.backing.markers()?.into_iter().filter(is_within);
        left.into_iter().try_for_each(|(_, spot)| self.backing.set_marker(spot, None))
    }
}
