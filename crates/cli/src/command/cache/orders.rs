//! Caches by their names: their configurations, and orders to those that are served.

use plumb_caches::{CacheConfig, CacheOrder, CacheStatus, OrderError};
use plumb_serve::named::control::Order;
use plumb_targets::Result;

use crate::terminal;

/// Returns the configuration of a cache.
pub(super) fn config(name: &str) -> Result<CacheConfig> {
    CacheConfig::load(&plumb_caches::directory(), name)
}

/// Gives an order to a cache that is served; `None` if it is not.
pub(super) fn order(
    name: &str,
    order: &Order<CacheOrder>,
) -> std::result::Result<Option<CacheStatus>, OrderError> {
    plumb_caches::order(name, order, &|line| terminal::say(&format!("plumb: {line}")))
}
