//! Policies that outlast a power cycle, and how sure that is.
//!
//! Two means, chosen by what was read back after a change, never by what should work:
//! 1. **In the drive**, where its saved value is now what was asked for (SAS pages with PS=1, NVMe features that can be
//!    saved, SCT with its option bit).
//! 2. **At every start**: a udev rule that knows the disk by its WWN or serial, whatever its name.
//!
//! For both, a wish file in `/etc/plumb/policy.d` says what is wanted, and a unit at boot and after resume reads every
//! disk that is named there and mends what is not so (`plumb policy enforce`). The rule alone acts early and without
//! plumb; the unit verifies.
//!
//! ```text
//!   /etc/plumb/policy.d/IDENTITY.toml              the wish: the one source of what follows
//!   /etc/udev/rules.d/99-plumb-policy.rules        made from all wishes that no drive keeps
//!   /etc/systemd/system/plumb-policy.service       at boot;  plumb-policy-resume.service after sleep
//!   /var/lib/plumb/policy/persistence.json         requested, or proven over a power cycle
//! ```
//! A policy is `requested` until a later reading, in another boot, has found it: then it is `proven`.

mod enforce;
mod error;
mod install;
mod means;
mod standing;
mod udev;
mod unit;
mod wish;

pub use enforce::{Enforcement, enforcement};
pub use error::PersistError;
pub use install::{Installed, Places, install, remove};
pub use means::{Means, means};
pub use standing::{Kept, Ledger, Standing, Witness};
pub use udev::{RuleError, check_rules, rules};
pub use unit::{BOOT_UNIT, RESUME_UNIT, boot_unit, resume_unit};
pub use wish::{CacheType, Wish, load_wishes};
