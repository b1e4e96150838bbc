//! Settings that set states on the machine of a real target, and restore the earlier ones.

use plumb_block::in_one_line;
use plumb_targets::{Name, Permission};
use plumb_trial::TrialError;

use crate::setting::{CacheSetting, CacheWanted, Setting};
use crate::{Factor, FindMachine};

/// Settings of a real target; none if the machine stays unchanged.
#[derive(Default)]
pub struct Switches {
    /// Write cache of the drives beneath the target; its levels are [`POLICY`].
    pub(super) policy: Option<Box<dyn Setting>>,
    /// Cache in front of the target; its levels are no cache, and a write-back cache of 5 GB.
    pub(super) cache: Option<Box<dyn Setting>>,
}

/// The states of a drive's write cache.
const POLICY: [&str; 3] = ["on", "off", "protected"];

/// Reason why there are no figures of other states.
pub(super) const NOT_SWITCHED: &str =
    "the drive's cache stays as it is: --switch puts it into each of its states, and restores it at the end";

impl Switches {
    /// Returns the switches of the target `on`: the write caches of the disks beneath it if `policy` is set,
    /// and a cache in front of it whose log is at the path `cache_log`, if there is one.
    ///
    /// # Errors
    /// If `on` does not exist, there are no such disks, or the user may not change them.
    pub fn new(
        on: &str,
        policy: bool,
        cache_log: Option<&str>,
        permission: &Permission,
        machine: &FindMachine<'_>,
    ) -> Result<Self, TrialError> {
        if let Name::Path(path) = Name::parse(on)?
            && !path.exists()
        {
            let why = "it is not there; name a directory, a file or a block device that is";
            return Err(TrialError::usage(format!("--on {on}: {why}")));
        }
        let set_policy = || {
            let factor = format!("policy={}", POLICY.join(",")).parse::<Factor>();
            factor.map_err(TrialError::usage)?.setting_of_disks(&[on.to_owned()], machine)
        };
        let set_cache = |log| -> Result<Box<dyn Setting>, TrialError> {
            let levels = ["none", "wb:5G"].iter().filter_map(|level| level.parse().ok()).collect();
            let wanted = CacheWanted::new(on, log, permission)?;
            Ok(Box::new(CacheSetting::new(machine()?, wanted, levels)))
        };
        Ok(Self {
            policy: policy.then(set_policy).transpose()?,
            cache: cache_log.map(set_cache).transpose()?,
        })
    }

    /// Puts the drive into a state. The error is the reason why that is not possible.
    pub(super) fn put(&mut self, state: &str) -> Result<(), String> {
        let policy = self.policy.as_mut().ok_or(NOT_SWITCHED)?;
        let place = POLICY.iter().position(|known| *known == state).ok_or(NOT_SWITCHED)?;
        policy.set(place).map_err(|error| in_one_line(&error))
    }

    /// Restores everything.
    pub(super) fn restore(&mut self) -> Result<(), TrialError> {
        let put_back =
            |setting: &mut Option<Box<dyn Setting>>| setting.as_mut().map_or(Ok(()), |of| of.restore());
        match (put_back(&mut self.cache), put_back(&mut self.policy)) {
            (Err(one), Err(other)) => Err(one.and(&other)),
            (cache, policy) => cache.and(policy),
        }
    }
}
