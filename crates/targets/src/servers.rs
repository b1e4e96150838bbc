//! Queries to the servers of simulated drives and caches on this machine, for the estimate of what a power
//! cut would take.

use plumb_block::in_one_line;
use plumb_path::exposure::{CacheShare, Live};
use plumb_serve::named::control::{Order, give};
use plumb_state::places;

use crate::served_drive::{DriveOrder, DriveStatus};
use plumb_caches::{CacheOrder, CacheStatus, sockets};

/// Running servers of this user, queried by name.
#[derive(Debug)]
pub struct Servers;

impl Live for Servers {
    fn drive(&self, name: &str) -> Result<u64, String> {
        let status = give(&places::run(), name, &Order::<DriveOrder>::Status);
        status.map(|status: DriveStatus| status.dirty_bytes).map_err(|error| in_one_line(&error))
    }

    fn cache(&self, name: &str) -> Result<CacheShare, String> {
        let status = give(&sockets(), name, &Order::<CacheOrder>::Status);
        let share =
            |status: CacheStatus| CacheShare { bytes: status.only_in_log().0, oldest: status.oldest_dirty };
        status.map(share).map_err(|error| in_one_line(&error))
    }
}
