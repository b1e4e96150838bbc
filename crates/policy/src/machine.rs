//! The machine of a command at one moment: its gateway, administrators' claims, and the user's privilege.

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

/// A machine at one moment.
pub struct Machine {
    /// Gateway to the disks.
    pub gateway: Arc<dyn Gateway>,
    /// Administrators' claims.
    pub claims: Claims,
    /// Current time, for the expiry of claims.
    pub now: Timestamp,
    /// True if the user is root.
    pub is_root: bool,
}

/// A recorded claim.
#[derive(Debug)]
pub struct RecordedClaim {
    /// Name of the disk.
    pub name: String,
    /// The claim.
    pub claim: Claim,
    /// Reason why it has no effect although it was recorded.
    pub doubt: Option<String>,
}

impl Machine {
    /// Returns this machine in its present state, with the claims in the file `claims`.
    ///
    /// # Errors
    /// If the file cannot be read or parsed.
    pub fn this(claims: &Path) -> Result<Self, PolicyError> {
        let (claims, is_root) = (Claims::load(claims)?, rustix::process::geteuid().is_root());
        Ok(Self { gateway: Arc::new(LiveGateway::new()), claims, now: Timestamp::now(), is_root })
    }

    /// Refuses everybody but root, before anything is changed.
    ///
    /// # Errors
    /// [`PolicyError::NotRoot`].
    pub fn need_root(&self, what: &'static str) -> Result<(), PolicyError> {
        if self.is_root { Ok(()) } else { Err(PolicyError::NotRoot { what }) }
    }

    /// Creates a reader of the disks.
    ///
    /// # Errors
    /// If the uses of the disks cannot be determined.
    pub fn reader(&self) -> Result<Reader<'_>, PolicyError> {
        Ok(Reader::new(&*self.gateway, &self.claims, self.now)?)
    }

    /// Returns the environment of a change.
    pub fn session<'a>(&'a self, stop: &'a AtomicBool, progress: Progress<'a>) -> Session<'a> {
        Session { gateway: &*self.gateway, claims: &self.claims, now: self.now, stop, progress }
    }

    /// Returns the disk of this name. Refuses anything that is not a disk or has no identity.
    ///
    /// # Errors
    /// Fails with the refusal.
    pub fn disk(&self, name: &str) -> Result<DeviceView, PolicyError> {
        let unknown = |error| PolicyError::NoDisk(error);
        let view = self.reader()?.one(name).map_err(unknown)?;
        match (&view.identity, &view.refusal) {
            (None, Some(refused)) => Err(PolicyError::refused_disk(name, refused)),
            (None, None) => Err(PolicyError::Unrecognizable { name: name.to_owned() }),
            (Some(_), _) => Ok(view),
        }
    }

    /// Returns the identity of the disk of this name; an absent disk must be named by its identity.
    ///
    /// # Errors
    /// If the uses of the disks cannot be determined.
    pub fn identity(&self, name: &str) -> Result<String, PolicyError> {
        let known = self.reader()?.one(name).ok().and_then(|view| view.identity);
        Ok(known.unwrap_or_else(|| name.to_owned()))
    }

    /// Records a claim about the disk `name` in a file, and reads the disk again with it.
    ///
    /// # Errors
    /// If the disk is refused, or the claim cannot be recorded.
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
