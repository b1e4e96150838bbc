//! Persistence of policies across a power cycle, and the confidence in it.
//!
//! There are two mechanisms, chosen by what was read back after a change, never by assumption:
//! 1. **In the drive**, if its saved value now is the requested one (SAS pages with PS=1, NVMe features that
//!    can be saved, SCT with its option bit).
//! 2. **At every start**: a udev rule that recognises the disk by its WWN or serial, whatever its name.
//!
//! In both cases a file in `/etc/plumb/policy.d` holds the desired state, and a unit at boot and after resume
//! reads every disk listed there and corrects differences (`plumb policy enforce`). The rule alone acts early
//! and without plumb; the unit verifies.
//!
//! ```text
//!   /etc/plumb/policy.d/IDENTITY.toml              desired state, from which the other files are made
//!   /etc/udev/rules.d/99-plumb-policy.rules        rules for all desired states that no drive keeps
//!   /etc/systemd/system/plumb-policy.service       at boot;  plumb-policy-resume.service after sleep
//!   /var/lib/plumb/policy/persistence.json         confidence in each of them
//! ```
//! A policy is `requested` until a later reading has tested it. It is `proven` if the drive itself has
//! counted a power-off in between: NVMe drives in their health log, ATA drives by SMART attribute 12. In
//! another boot without such a count it is `held-over-reboot`, which is weaker: a reboot that leaves the
//! power on preserves every setting of a drive, saved or not. SCSI drives count spindle starts (log page
//! 0Eh), which are not power losses.

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
