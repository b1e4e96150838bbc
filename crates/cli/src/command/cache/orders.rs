//! Caches by their names: their configurations, and orders to those that are served.

use plumb_serve::named::control::Order;
use plumb_targets::Result;
use plumb_targets::cache::{self, CacheConfig, CacheOrder, CacheStatus, OrderError};

use crate::terminal;

/// Returns the configuration of a cache.
pub(super) fn config(name: &str) -> Result<CacheConfig> {
    CacheConfig::load(&cache::directory(), name)
}

/// Gives an order to a cache that is served; `None` if it is not.
pub(super) fn order(
    name: &str,
    order: &Order<CacheOrder>,
) -> std::result::Result<Option<CacheStatus>, OrderError> {
    cache::order(name, order, &|line| terminal::say(&format!("plumb: {line}")))
}
