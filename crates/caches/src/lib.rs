//! Write-back caches: made, found again by their name, opened over their devices, and told what only a cache
//! can be told.
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
//! - a leg or a backing device is opened by one process: a block device is claimed (O_EXCL), a file is locked
//!   (flock(2)); of a leg that is a part of a device the part is locked, and the claim is shared with those
//!   who use other parts ([`plumb_linux::shared_claim`]);
//! - the backing device says which cache it needs from before the cache is served until it is detached;
//! - a cache is opened only over the backing device and the log that name each other, and with a log no older
//!   than the last that was served.

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
pub use remedies::serving;
pub use served::{CacheControls, CacheOrder, CacheStatus, LaidOut, serve_cache};
pub use wear::{Endurance, EnduranceBy, Wear};
