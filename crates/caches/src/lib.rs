//! Write-back caches as named objects: creating, finding and opening them, serving them, and the orders that
//! only a cache accepts. The cache itself is `plumb-cache`, its configuration and marker are in
//! `plumb-guard`, and the server is in `plumb-serve`.
//!
//! ```text
//!   cache:NAME ──► config  (a small JSON, by name)  ──► member (legs and backing, alone, past the page cache)
//!                                                           │        ▲
//!                                                           ▼        │ marker (which cache the backing device needs)
//!   cache:backing=...,log=... ──► inline ──────────► plumb_cache::driver::CachedDevice
//!   the drive of a proof ───────► on_one_drive ──────────────────┘
//! ```
//!
//! Invariants:
//! - A leg or a backing device is open in one process only: a block device is claimed (`O_EXCL`), a file is
//!   locked (flock(2)). For a leg that is a part of a device the part is locked, and the claim is shared with
//!   the processes that use other parts ([`plumb_linux::shared_claim`]).
//! - The backing device names the cache that it needs, from before the cache is served until it is detached.
//! - A cache opens only if its backing device and its log name each other, and the log is no older than the
//!   last one that was served.

mod adopt;
mod change;
mod changing;
mod create;
mod deleted;
mod discard;
mod find;
mod follower;
mod grow_backing;
mod inline;
mod last_block;
mod laying_out;
mod leg;
mod member;
mod named;
mod new_files;
mod on_one_drive;
mod orders;
mod part;
mod patient_check;
mod placement;
mod remedies;
mod served;
mod wear;
mod witness;

pub use adopt::{AdoptWanted, adopt};
pub use create::{CreateWanted, clear_place_of_marker, create};
pub use discard::{DiscardedCache, discard, was_detached};
pub use inline::{drives_of, open_simulated};
pub use laying_out::{LayoutObserver, in_mode};
pub use member::Member;
pub use named::{NamedCache, Opening, is_meant, open_all, survey};
pub use new_files::LeftFiles;
pub use on_one_drive::{CacheOnOneDrive, ParseCacheError};
pub use orders::{OrderError, order, sockets};
pub use part::Part;
pub use plumb_guard::cache::config::{CacheConfig, directory};
pub use plumb_guard::cache::device_place::DevicePlace;
pub use plumb_guard::cache::stop_record::{BackingState, StopRecord};
pub use plumb_guard::cache::tuning::{Sleep, Tuning};
pub use remedies::{last_resort, serving};
pub use served::{CacheControls, CacheOrder, CacheStatus, LaidOut, serve_cache};
pub use wear::{Endurance, EnduranceBy, Wear};
