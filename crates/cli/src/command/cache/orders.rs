//! Configurations of caches, and orders to served caches, by name.

use plumb_caches::{CacheConfig, CacheOrder, CacheStatus, OrderError};
use plumb_serve::named::control::Order;
use plumb_targets::Result;

use crate::terminal;

/// Returns the configuration of a cache.
pub(super) fn config(name: &str) -> Result<CacheConfig> {
    CacheConfig::load(&plumb_caches::directory(), name)
}

/// Gives an order to a served cache; `None` if the cache is not served.
pub(super) fn order(
    name: &str,
    order: &Order<CacheOrder>,
) -> std::result::Result<Option<CacheStatus>, OrderError> {
    plumb_caches::order(name, order, &|line| terminal::say(&format!("plumb: {line}")))
}
