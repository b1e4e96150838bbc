//! Confidence in each persisted policy: requested, held, proven or lost.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::error::PersistError;
use super::persistence::Persistence;
use crate::device::Reader;
use crate::file;
use crate::state::{State, on_off};
use crate::time_text::now_text;
use crate::view::DeviceView;

/// Confidence that a policy persists across a power cycle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "standing")]
pub enum Certainty {
    /// The state was set but not tested.
    Requested,
    /// A later boot found the state. The drive did not lose power in between, or does not reveal it.
    HeldOverReboot {
        /// Time: RFC 3339.
        at: String,
        /// Evidence.
        evidence: String,
    },
    /// The state was found after the drive had counted a power cycle.
    Proven {
        /// Time: RFC 3339.
        at: String,
        /// Evidence.
        evidence: String,
    },
    /// A later boot, or a reading after a power cycle, did not find the state.
    Lost {
        /// Time: RFC 3339.
        at: String,
        /// Evidence.
        evidence: String,
    },
}

/// A persisted policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptPolicy {
    /// The disk.
    pub identity: String,
    /// Requested state.
    pub state: State,
    /// Mechanism that makes it persist.
    pub means: Persistence,
    /// Time of setting: RFC 3339.
    pub requested_at: String,
    /// Boot in which the state was set, or last found lost; later readings in this boot prove nothing.
    pub boot_id: String,
    /// Number of power-ons of the drive at that time, if counted.
    pub power_cycles: Option<u64>,
    /// Confidence.
    #[serde(flatten)]
    pub standing: Certainty,
}

/// File of all persisted policies.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    /// Persisted policy of each disk, by identity.
    pub kept: Vec<KeptPolicy>,
}

/// Reading for later comparison.
#[derive(Debug, Clone, Copy)]
pub struct Reading<'a> {
    /// Present view of the disk.
    pub view: &'a DeviceView,
    /// Boot of the reading.
    pub boot_id: &'a str,
    /// Number of power-ons of the disk, if counted.
    pub power_cycles: Option<u64>,
}

impl<'a> Reading<'a> {
    /// Creates the reading of `view`, obtained from `reader`, in this boot.
    pub fn new(reader: &Reader<'_>, view: &'a DeviceView, boot_id: &'a str) -> Self {
        Self { view, boot_id, power_cycles: reader.power_cycles(view) }
    }
}

impl Ledger {
    /// Reads the file; a missing one is empty.
    ///
    /// # Errors
    /// If the file cannot be read or parsed.
    pub fn load(path: &Path) -> Result<Self, PersistError> {
        let Some(bytes) = file::read(path)? else { return Ok(Self::default()) };
        serde_json::from_slice(&bytes)
            .map_err(|error| PersistError::Malformed { path: path.to_owned(), what: error.to_string() })
    }

    /// Writes the file durably.
    ///
    /// # Errors
    /// Fails as the file system does.
    pub fn save(&self, path: &Path) -> Result<(), PersistError> {
        let encoded = serde_json::to_vec_pretty(self).map_err(std::io::Error::from);
        Ok(file::publish(path, &encoded.map_err(file::failed("encode", path))?)?)
    }

    /// Records that a policy was set in this boot, and discards earlier knowledge of the disk.
    ///
    /// # Errors
    /// If the disk cannot be recognised later.
    pub fn request(
        &mut self,
        reading: Reading<'_>,
        state: State,
        means: Persistence,
    ) -> Result<(), PersistError> {
        let nameless = || PersistError::Nameless { name: reading.view.name.clone() };
        let identity = reading.view.identity.clone().ok_or_else(nameless)?;
        self.forget(&identity);
        self.kept.push(KeptPolicy {
            identity,
            state,
            means,
            requested_at: now_text(),
            boot_id: reading.boot_id.to_owned(),
            power_cycles: reading.power_cycles,
            standing: Certainty::Requested,
        });
        self.kept.sort_by(|left, right| left.identity.cmp(&right.identity));
        Ok(())
    }

    /// Removes a disk. Returns true if it was there.
    pub fn forget(&mut self, identity: &str) -> bool {
        let before = self.kept.len();
        self.kept.retain(|kept| kept.identity != identity);
        self.kept.len() < before
    }

    /// Reads the disk with this identity, if present, and updates its entry; see [`update`](Self::update).
    pub fn look(&mut self, reader: &Reader<'_>, identity: &str) -> bool {
        let view = reader.find(identity).and_then(|disk| reader.one(&disk.name).ok());
        view.is_some_and(|view| self.update(Reading::new(reader, &view, &reader.boot_id())))
    }

    /// Reads all recorded disks, as [`look`](Self::look) does. Returns true if there is news.
    pub fn look_at_all(&mut self, reader: &Reader<'_>) -> bool {
        let identities: Vec<String> = self.kept.iter().map(|kept| kept.identity.clone()).collect();
        identities.iter().filter(|identity| self.look(reader, identity)).count() > 0
    }

    /// Compares a reading with the requested state. Returns true if there is news.
    ///
    /// A reading in the same boot proves nothing, unless the drive has counted a power-off. A proven state
    /// stays so until it is lost.
    pub fn update(&mut self, reading: Reading<'_>) -> bool {
        let identity = reading.view.identity.as_deref();
        let Some(kept) = self.kept.iter_mut().find(|kept| Some(kept.identity.as_str()) == identity) else {
            return false;
        };
        let Some(standing) = judge(kept, reading).filter(|standing| is_news(standing, &kept.standing)) else {
            return false;
        };
        if matches!(standing, Certainty::Lost { .. }) {
            // A state that is set again in this boot does not prove that it persists.
            kept.boot_id = reading.boot_id.to_owned();
            kept.power_cycles = reading.power_cycles.or(kept.power_cycles);
        }
        kept.standing = standing;
        true
    }
}

/// Returns true if `now` adds to what is known.
const fn is_news(now: &Certainty, known: &Certainty) -> bool {
    match now {
        Certainty::Requested => false,
        Certainty::HeldOverReboot { .. } => matches!(known, Certainty::Requested | Certainty::Lost { .. }),
        Certainty::Proven { .. } => !matches!(known, Certainty::Proven { .. }),
        Certainty::Lost { .. } => true,
    }
}

/// Test that a setting has undergone since it was set.
#[derive(Clone, Copy)]
enum Test {
    /// Number of power cycles, counted by the drive.
    PowerCycles(u64),
    /// A reboot, while the drive counted no power cycle.
    RebootWithPower,
    /// A reboot; the drive does not reveal whether its power was off.
    Reboot,
}

impl Test {
    fn between(kept: &KeptPolicy, reading: Reading<'_>) -> Option<Self> {
        let counted = kept.power_cycles.zip(reading.power_cycles);
        match counted.map(|(before, now)| now.saturating_sub(before)) {
            Some(count @ 1..) => Some(Self::PowerCycles(count)),
            _ if kept.boot_id == reading.boot_id => None,
            Some(0) => Some(Self::RebootWithPower),
            None => Some(Self::Reboot),
        }
    }

    fn words(self) -> String {
        match self {
            Self::PowerCycles(1) => "the drive counts one power cycle since".to_owned(),
            Self::PowerCycles(count) => format!("the drive counts {count} power cycles since"),
            Self::RebootWithPower => {
                "in a later boot, before which the drive counts no power cycle".to_owned()
            }
            Self::Reboot => "in a later boot; the drive does not say whether its power was off".to_owned(),
        }
    }
}

fn judge(kept: &KeptPolicy, reading: Reading<'_>) -> Option<Certainty> {
    let test = Test::between(kept, reading)?;
    let view = reading.view;
    view.device.wce?;
    let evidence = format!(
        "{}: write cache {}, saved value {}, the kernel believes {}",
        test.words(),
        on_off(view.device.wce, "unknown"),
        on_off(view.device.saved, "not reported"),
        view.kernel.write_cache.as_deref().unwrap_or("nothing"),
    );
    let at = now_text();
    Some(match (is_as_wanted(kept, view), test) {
        (false, _) => Certainty::Lost { at, evidence },
        (true, Test::PowerCycles(_)) => Certainty::Proven { at, evidence },
        (true, Test::RebootWithPower | Test::Reboot) => Certainty::HeldOverReboot { at, evidence },
    })
}

fn is_as_wanted(kept: &KeptPolicy, view: &DeviceView) -> bool {
    let wanted = kept.state != State::Off;
    let saved =
        kept.means == Persistence::AtEveryStart || view.device.saved.is_none_or(|saved| saved == wanted);
    view.state.is(kept.state) && view.device.wce == Some(wanted) && saved
}
