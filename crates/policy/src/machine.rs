//! The machine whose disks a command is about, at one moment: its gateway, the words of its administrators,
//! and who asks.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use jiff::Timestamp;

use crate::apply::{Progress, Session};
use crate::claims::{self, Claim, Claims};
use crate::device::Reader;
use crate::error::PolicyError;
use crate::gateway::{Gateway, LiveGateway};
use crate::view::DeviceView;

/// A machine, at a moment.
pub struct Machine {
    /// Gateway to the disks.
    pub gateway: Arc<dyn Gateway>,
    /// The words of administrators.
    pub claims: Claims,
    /// Now, for the claims.
    pub now: Timestamp,
    /// True if root asks.
    pub is_root: bool,
}

/// A word that was recorded.
#[derive(Debug)]
pub struct RecordedClaim {
    /// Name of the disk.
    pub name: String,
    /// The word.
    pub claim: Claim,
    /// Why it does not count although it was recorded.
    pub doubt: Option<String>,
}

impl Machine {
    /// Returns this machine as it is now, with the words in the file `claims`.
    ///
    /// # Errors
    /// If the file cannot be read or understood.
    pub fn this(claims: &Path) -> Result<Self, PolicyError> {
        let (claims, is_root) = (Claims::load(claims)?, rustix::process::geteuid().is_root());
        Ok(Self { gateway: Arc::new(LiveGateway::new()), claims, now: Timestamp::now(), is_root })
    }

    /// Refuses everybody but root, before anything is touched.
    ///
    /// # Errors
    /// [`PolicyError::NotRoot`].
    pub fn need_root(&self, what: &'static str) -> Result<(), PolicyError> {
        if self.is_root { Ok(()) } else { Err(PolicyError::NotRoot { what }) }
    }

    /// Returns a reader of the disks.
    ///
    /// # Errors
    /// If it cannot be known what uses them.
    pub fn reader(&self) -> Result<Reader<'_>, PolicyError> {
        Ok(Reader::new(&*self.gateway, &self.claims, self.now)?)
    }

    /// Returns the environment of a change.
    pub fn session<'a>(&'a self, stop: &'a AtomicBool, progress: &'a dyn Progress) -> Session<'a> {
        Session { gateway: &*self.gateway, claims: &self.claims, now: self.now, stop, progress }
    }

    /// Returns the disk of this name; what is no disk, or none that plumb could tell again, is refused.
    ///
    /// # Errors
    /// The refusal.
    pub fn disk(&self, name: &str) -> Result<DeviceView, PolicyError> {
        let unknown = |error| PolicyError::NoDisk(error);
        let view = self.reader()?.one(name).map_err(unknown)?;
        match (&view.identity, &view.refusal) {
            (None, Some(refused)) => Err(PolicyError::refused_disk(name, refused)),
            (None, None) => Err(PolicyError::Unrecognizable { name: name.to_owned() }),
            (Some(_), _) => Ok(view),
        }
    }

    /// Returns the identity of the disk of this name; a missing disk is named by its identity.
    ///
    /// # Errors
    /// If it cannot be known what uses the disks.
    pub fn identity(&self, name: &str) -> Result<String, PolicyError> {
        let known = self.reader()?.one(name).ok().and_then(|view| view.identity);
        Ok(known.unwrap_or_else(|| name.to_owned()))
    }

    /// Records a word about the disk `name` in a file, and reads the disk again with it.
    ///
    /// # Errors
    /// If the disk is refused, or the word cannot be recorded.
    pub fn record(&mut self, file: &Path, name: &str, claim: Claim) -> Result<RecordedClaim, PolicyError> {
        let view = self.disk(name)?;
        if let Some(refused) = view.refusal.as_ref().filter(|_| self.is_root) {
            return Err(PolicyError::refused_disk(&view.name, refused));
        }
        let claim = Claim { identity: view.identity.unwrap_or_default(), ..claim };
        claims::record(file, &claim, self.now)?;
        self.claims = Claims::load(file)?;
        let view = self.disk(name)?;
        let doubt = claims::protection(&view, &self.claims, self.now).err();
        Ok(RecordedClaim { name: view.name, claim, doubt })
    }
}
