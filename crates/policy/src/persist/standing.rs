//! Requested or proven: what is known of each policy that is to last.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::error::PersistError;
use super::means::Means;
use crate::durable_file;
use crate::moment::now_text;
use crate::state::{Found, State};
use crate::view::DeviceView;

/// How sure it is that a policy outlasts a power cycle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "standing")]
pub enum Standing {
    /// It was set, and no power cycle has tested it.
    Requested,
    /// A later boot found it.
    Proven {
        /// When: RFC 3339.
        at: String,
        /// What was read.
        evidence: String,
    },
    /// A later boot did not find it.
    Lost {
        /// When: RFC 3339.
        at: String,
        /// What was read.
        evidence: String,
    },
}

/// One policy that is to last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// The disk.
    pub identity: String,
    /// What was asked for.
    pub state: State,
    /// By what it lasts.
    pub means: Means,
    /// When it was set: RFC 3339.
    pub requested_at: String,
    /// The boot in which it was set.
    pub boot_id: String,
    /// How often the drive had been powered on then, where it counts that.
    pub power_cycles: Option<u64>,
    /// How sure it is.
    #[serde(flatten)]
    pub standing: Standing,
}

/// All of them, in a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    /// One for each disk, by identity.
    pub kept: Vec<Kept>,
}

/// What a later reading is held against.
#[derive(Debug, Clone, Copy)]
pub struct Witness<'a> {
    /// The disk as it is now.
    pub view: &'a DeviceView,
    /// The boot in which it was read.
    pub boot_id: &'a str,
}

impl Ledger {
    /// Reads the file; one that does not exist holds nothing.
    ///
    /// # Errors
    /// If it cannot be read or understood.
    pub fn load(path: &Path) -> Result<Self, PersistError> {
        let bytes = match std::fs::read(path) {
            Ok(bytes) => bytes,
            Err(absent) if absent.kind() == std::io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(source) => return Err(PersistError::io("read", path, source)),
        };
        serde_json::from_slice(&bytes)
            .map_err(|error| PersistError::Malformed { path: path.to_owned(), what: error.to_string() })
    }

    /// Writes the file durably.
    ///
    /// # Errors
    /// As the file system answers.
    pub fn save(&self, path: &Path) -> Result<(), PersistError> {
        if let Some(directory) = path.parent() {
            std::fs::create_dir_all(directory)
                .map_err(|source| PersistError::io("make", directory, source))?;
        }
        let bytes = serde_json::to_vec_pretty(self)
            .map_err(|error| PersistError::io("encode", path, error.into()))?;
        durable_file::replace(path, &bytes, 0o644).map_err(|source| PersistError::io("write", path, source))
    }

    /// Notes that a policy was set, in this boot. What was known of the disk before counts no more.
    ///
    /// # Errors
    /// If nothing could tell the disk later.
    pub fn request(&mut self, witness: Witness<'_>, state: State, means: Means) -> Result<(), PersistError> {
        let nameless = || PersistError::Nameless { name: witness.view.name.clone() };
        let identity = witness.view.identity.clone().ok_or_else(nameless)?;
        self.forget(&identity);
        self.kept.push(Kept {
            identity,
            state,
            means,
            requested_at: now_text(),
            boot_id: witness.boot_id.to_owned(),
            power_cycles: power_cycles(witness.view),
            standing: Standing::Requested,
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

    /// Holds a reading against what was requested; whether anything is known now that was not before.
    ///
    /// Nothing follows from a reading in the same boot, nor where the drive counts that it has not been off since.
    pub fn witness(&mut self, witness: Witness<'_>) -> bool {
        let identity = witness.view.identity.as_deref();
        let Some(kept) = self.kept.iter_mut().find(|kept| Some(kept.identity.as_str()) == identity) else {
            return false;
        };
        let standing = judge(kept, witness);
        let news = standing.as_ref().is_some_and(|standing| !alike(standing, &kept.standing));
        if let Some(standing) = standing.filter(|_| news) {
            kept.standing = standing;
        }
        news
    }
}

/// Whether both say the same but for the time.
fn alike(left: &Standing, right: &Standing) -> bool {
    matches!(
        (left, right),
        (Standing::Requested, Standing::Requested)
            | (Standing::Proven { .. }, Standing::Proven { .. })
            | (Standing::Lost { .. }, Standing::Lost { .. })
    )
}

fn judge(kept: &Kept, witness: Witness<'_>) -> Option<Standing> {
    if kept.boot_id == witness.boot_id {
        return None;
    }
    let cycles = power_cycles(witness.view);
    let off_since = match (kept.power_cycles, cycles) {
        (Some(before), Some(now)) if now <= before => return None,
        (Some(before), Some(now)) => format!("the drive was powered on {} times since", now - before),
        _ => "in a later boot".to_owned(),
    };
    let view = witness.view;
    let device = match view.device.wce {
        Some(true) => "on",
        Some(false) => "off",
        None => return None,
    };
    let evidence = format!(
        "{off_since}: write cache {device}, saved value {}, the kernel believes {}",
        view.device.saved.map_or("not reported", |saved| if saved { "on" } else { "off" }),
        view.kernel.write_cache.as_deref().unwrap_or("nothing"),
    );
    let at = now_text();
    Some(if is_as_wanted(kept, view) {
        Standing::Proven { at, evidence }
    } else {
        Standing::Lost { at, evidence }
    })
}

fn is_as_wanted(kept: &Kept, view: &DeviceView) -> bool {
    let wanted = kept.state != State::Off;
    let state = match kept.state {
        State::Off => Found::Off,
        State::On => Found::On,
        State::Protected => Found::Protected,
    };
    let saved = kept.means == Means::AtEveryStart || view.device.saved.is_none_or(|saved| saved == wanted);
    view.state == state && view.device.wce == Some(wanted) && saved
}

fn power_cycles(view: &DeviceView) -> Option<u64> {
    view.health.iter().find(|counter| counter.name == "power_cycles").map(|counter| counter.value)
}
