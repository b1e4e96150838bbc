//! Policies that outlast a power cycle, and how sure that is.
//!
//! Two means, chosen by what was read back after a change, never by what should work:
//! 1. **In the drive**, where its saved value is now what was asked for (SAS pages with PS=1, NVMe features
//!    that can be saved, SCT with its option bit).
//! 2. **At every start**: a udev rule that knows the disk by its WWN or serial, whatever its name.
//!
//! For both, a file in `/etc/plumb/policy.d` says what is wanted, and a unit at boot and after resume reads
//! every disk that is named there and mends what is not so (`plumb policy enforce`). The rule alone acts
//! early and without plumb; the unit verifies.
//!
//! ```text
//!   /etc/plumb/policy.d/IDENTITY.toml              the desired state: the one source of what follows
//!   /etc/udev/rules.d/99-plumb-policy.rules        made from all desired states that no drive keeps
//!   /etc/systemd/system/plumb-policy.service       at boot;  plumb-policy-resume.service after sleep
//!   /var/lib/plumb/policy/persistence.json         how sure each of them is
//! ```
//! A policy is `requested` until a later reading has tested it. It is `proven` when the drive itself counts
//! that it was powered off meanwhile: NVMe drives in their health log, ATA drives by SMART attribute 12. In
//! another boot without such a count it is `held-over-reboot`, which is less: a reboot that leaves the power
//! on leaves every setting of a drive as it is, saved or not. SCSI drives count spindle starts (log page
//! 0Eh), which are not losses of power.

mod desired;
mod error;
mod install;
mod keep;
mod persistence;
mod standing;
mod udev;
mod unit;

pub use desired::{CacheType, DesiredState, load_desired};
pub use error::PersistError;
pub use install::{InstallPaths, InstallResult, install, remove};
pub use keep::{keep, keep_no_longer};
pub use persistence::{Persistence, persistence};
pub use standing::{Certainty, KeptPolicy, Ledger, Reading};
pub use udev::rules;
pub use unit::{BOOT_UNIT, RESUME_UNIT, boot_unit, resume_unit};
