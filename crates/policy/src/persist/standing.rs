//! Requested, held, proven or lost: what is known of each policy that is to last.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::error::PersistError;
use super::persistence::Persistence;
use crate::device::Reader;
use crate::file;
use crate::state::{State, on_off};
use crate::time_text::now_text;
use crate::view::DeviceView;

/// How sure it is that a policy outlasts a power cycle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "standing")]
pub enum Certainty {
    /// The state was set, and nothing has tested it.
    Requested,
    /// A later boot found it. Whether the drive was without power meanwhile is not known, or it was not.
    HeldOverReboot {
        /// When: RFC 3339.
        at: String,
        /// Evidence: what was read.
        evidence: String,
    },
    /// The state was found after the drive had counted a power cycle.
    Proven {
        /// When: RFC 3339.
        at: String,
        /// Evidence: what was read.
        evidence: String,
    },
    /// A later boot, or a reading after a power cycle, did not find it.
    Lost {
        /// When: RFC 3339.
        at: String,
        /// Evidence: what was read.
        evidence: String,
    },
}

/// One policy that is to last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptPolicy {
    /// The disk.
    pub identity: String,
    /// State that was requested.
    pub state: State,
    /// Mechanism that makes it persist.
    pub means: Persistence,
    /// When it was set: RFC 3339.
    pub requested_at: String,
    /// The boot in which it was set, or in which it was last found lost: what is found later in this boot
    /// proves nothing.
    pub boot_id: String,
    /// How often the drive had been powered on then, where it counts that.
    pub power_cycles: Option<u64>,
    /// How sure it is.
    #[serde(flatten)]
    pub standing: Certainty,
}

/// All of them, in a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    /// One for each disk, by identity.
    pub kept: Vec<KeptPolicy>,
}

/// Reading that a setting is compared with later.
#[derive(Debug, Clone, Copy)]
pub struct Reading<'a> {
    /// The disk as it is now.
    pub view: &'a DeviceView,
    /// The boot in which it was read.
    pub boot_id: &'a str,
    /// How often the disk was powered on, where it counts that.
    pub power_cycles: Option<u64>,
}

impl<'a> Reading<'a> {
    /// Returns the reading of `view`, which `reader` gave, in this boot.
    pub fn new(reader: &Reader<'_>, view: &'a DeviceView, boot_id: &'a str) -> Self {
        Self { view, boot_id, power_cycles: reader.power_cycles(view) }
    }
}

impl Ledger {
    /// Reads the file; one that does not exist holds nothing.
    ///
    /// # Errors
    /// If it cannot be read or understood.
    pub fn load(path: &Path) -> Result<Self, PersistError> {
        let Some(bytes) = file::read(path)? else { return Ok(Self::default()) };
        serde_json::from_slice(&bytes)
            .map_err(|error| PersistError::Malformed { path: path.to_owned(), what: error.to_string() })
    }

    /// Writes the file durably.
    ///
    /// # Errors
    /// As the file system answers.
    pub fn save(&self, path: &Path) -> Result<(), PersistError> {
        let encoded = serde_json::to_vec_pretty(self).map_err(std::io::Error::from);
        Ok(file::publish(path, &encoded.map_err(file::failed("encode", path))?)?)
    }

    /// Notes that a policy was set, in this boot. What was known of the disk before counts no more.
    ///
    /// # Errors
    /// If nothing could tell the disk later.
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

    /// Takes a disk out. Whether it was there.
    pub fn forget(&mut self, identity: &str) -> bool {
        let before = self.kept.len();
        self.kept.retain(|kept| kept.identity != identity);
        self.kept.len() < before
    }

    /// Reads the disk of this identity, if it is here, and updates what is known of it; see
    /// [`update`](Self::update).
    pub fn look(&mut self, reader: &Reader<'_>, identity: &str) -> bool {
        let view = reader.find(identity).and_then(|disk| reader.one(&disk.name).ok());
        view.is_some_and(|view| self.update(Reading::new(reader, &view, &reader.boot_id())))
    }

    /// Reads all disks that it has, as [`look`](Self::look) does; whether anything new is known.
    pub fn look_at_all(&mut self, reader: &Reader<'_>) -> bool {
        let identities: Vec<String> = self.kept.iter().map(|kept| kept.identity.clone()).collect();
        identities.iter().filter(|identity| self.look(reader, identity)).count() > 0
    }

    /// Holds a reading against what was requested; whether anything is known now that was not before.
    ///
    /// Nothing follows from a reading in the same boot, unless the drive counts that it was off. What is
    /// proven stays so until it is lost.
    pub fn update(&mut self, reading: Reading<'_>) -> bool {
        let identity = reading.view.identity.as_deref();
        let Some(kept) = self.kept.iter_mut().find(|kept| Some(kept.identity.as_str()) == identity) else {
            return false;
        };
        let Some(standing) = judge(kept, reading).filter(|standing| is_news(standing, &kept.standing)) else {
            return false;
        };
        if matches!(standing, Certainty::Lost { .. }) {
            // A state that is set again in this boot is not proof that it lasts.
            kept.boot_id = reading.boot_id.to_owned();
            kept.power_cycles = reading.power_cycles.or(kept.power_cycles);
        }
        kept.standing = standing;
        true
    }
}

/// Returns true if `now` says more than what is known.
const fn is_news(now: &Certainty, known: &Certainty) -> bool {
    match now {
        Certainty::Requested => false,
        Certainty::HeldOverReboot { .. } => matches!(known, Certainty::Requested | Certainty::Lost { .. }),
        Certainty::Proven { .. } => !matches!(known, Certainty::Proven { .. }),
        Certainty::Lost { .. } => true,
    }
}

/// Test that a setting has been through since it was set.
#[derive(Clone, Copy)]
enum Test {
    /// Number of power cycles, counted by the drive.
    PowerCycles(u64),
    /// A start of the kernel, while the drive counted no power cycle.
    RebootWithPower,
    /// A start of the kernel; the drive does not say whether its power was off.
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
