//! The machine that a command is about: its gateway, the words of its administrators, the time, and who asks.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use jiff::Timestamp;
use plumb_cache::Mode;
use plumb_policy::apply::{Progress, Session};
use plumb_policy::claims::Claims;
use plumb_policy::device::{Reader, foreign, surveyed_cache};
use plumb_policy::error::PolicyError;
use plumb_policy::file::FileError;
use plumb_policy::gateway::{Gateway, LiveGateway};
use plumb_policy::plan::PlanError;
use plumb_policy::select::Selection;
use plumb_policy::view::{DeviceView, PolicyDocument, Refusal as Refused};
use plumb_targets::cache;

use crate::arguments::policy::{Chosen, DiskArguments};
use crate::exit::{Exit, Refusal};
use crate::named;

/// A machine, at a moment.
pub(super) struct Host {
    pub(super) gateway: Arc<dyn Gateway>,
    pub(super) claims: Claims,
    pub(super) now: Timestamp,
    pub(super) is_root: bool,
}

impl Host {
    /// Creates the view of this machine as it is now.
    pub(super) fn new(shared: &DiskArguments) -> anyhow::Result<Self> {
        let claims = Claims::load(&shared.claims).map_err(|error| refusal(error.into()))?;
        let is_root = rustix::process::geteuid().is_root();
        Ok(Self { gateway: Arc::new(LiveGateway::new()), claims, now: Timestamp::now(), is_root })
    }

    /// Refuses everybody but root, before anything is touched.
    pub(super) fn need_root(&self, what: &str) -> anyhow::Result<()> {
        if self.is_root {
            return Ok(());
        }
        let message = format!("only root may {what}; nothing was done: run it again as root");
        Err(Refusal::new(Exit::Refused, message).into())
    }

    /// Returns a reader of the disks.
    ///
    /// # Errors
    /// [`Exit::Refused`] where it cannot be known what uses them.
    pub(super) fn reader(&self) -> anyhow::Result<Reader<'_>> {
        Reader::new(&*self.gateway, &self.claims, self.now).map_err(|unseen| refusal(unseen.into()))
    }

    pub(super) fn session<'a>(&'a self, stop: &'a AtomicBool, progress: &'a dyn Progress) -> Session<'a> {
        Session { gateway: &*self.gateway, claims: &self.claims, now: self.now, stop, progress }
    }

    /// Returns the disks that were chosen, all where none was named.
    ///
    /// # Errors
    /// [`Exit::Usage`] for a name that stands for nothing and an expression that is not understood;
    /// [`Exit::NotMeasured`] where it cannot be known what uses the disks.
    pub(super) fn document(&self, chosen: &Chosen) -> anyhow::Result<PolicyDocument> {
        let filter = filter(chosen)?;
        let reader = Reader::new(&*self.gateway, &self.claims, self.now)
            .map_err(|unseen| Refusal::because(Exit::NotMeasured, PolicyError::from(unseen)))?;
        let mut document = if chosen.devices.is_empty() { reader.all() } else { reader.named(&[])? };
        for name in &chosen.devices {
            document.devices.push(shown(&reader, name)?);
        }
        document.devices.retain(|view| filter.as_ref().is_none_or(|filter| filter.chooses(view)));
        Ok(document)
    }

    /// Returns the disk of this name; what is no disk, or none that plumb could tell again, is refused.
    ///
    /// # Errors
    /// [`Exit::Refused`] with the reason and the remedy.
    pub(super) fn disk(&self, name: &str) -> anyhow::Result<DeviceView> {
        no_disk_of_this_machine(name)?;
        let unknown = |error| Refusal::because(Exit::Refused, error);
        let view = self.reader()?.one(name).map_err(unknown)?;
        match (&view.identity, &view.refusal) {
            (None, Some(refused)) => Err(refused_disk(name, refused)),
            (None, None) => {
                let reason =
                    format!("{name} has no WWN and no serial number by which plumb could recognize it");
                Err(Refusal::new(Exit::Refused, reason).into())
            }
            (Some(_), _) => Ok(view),
        }
    }
}

/// Returns the view of what was named: also of a simulated drive, or of an export of an NBD server.
fn shown(reader: &Reader<'_>, name: &str) -> anyhow::Result<DeviceView> {
    match elsewhere(name)? {
        Some(view) => Ok(view),
        None => Ok(reader.one(name).map_err(|unknown| Refusal::because(Exit::Usage, unknown))?),
    }
}

/// Returns the view of what the kernel does not know; `None` if it does. A cache that was made is not opened
/// for it: it may be served, and opening it would recover its log.
fn elsewhere(name: &str) -> anyhow::Result<Option<DeviceView>> {
    if let Some(survey) = cache::survey(name).map_err(Refusal::from)? {
        let own = name.strip_prefix("cache:").unwrap_or(name);
        let config = cache::CacheConfig::load(&cache::directory(), own).map_err(Refusal::from)?;
        return Ok(Some(surveyed_cache(name, &survey, config.mode == Mode::Protected)));
    }
    let device = named::device(name.as_ref())?;
    Ok(device.map(|device| foreign(&device.opened.shown, &device.opened.device.info(), device.kind)))
}

/// Refuses what is named with a scheme: it can be shown, and is no disk whose policy could be changed.
pub(super) fn no_disk_of_this_machine(name: &str) -> anyhow::Result<()> {
    let refused = elsewhere(name)?.and_then(|view| view.refusal);
    refused.map_or(Ok(()), |refused| Err(refused_disk(name, &refused)))
}

/// Returns the expression of `--where`.
pub(super) fn filter(chosen: &Chosen) -> anyhow::Result<Option<Selection>> {
    let parsed = chosen.filter.as_deref().map(Selection::parse).transpose();
    parsed.map_err(|error| refusal(PolicyError::Select(error)))
}

/// Returns a disk that is refused, with what to do.
pub(super) fn refused_disk(name: &str, refused: &Refused) -> anyhow::Error {
    Refusal::new(Exit::Refused, format!("{name} is refused: {}; {}", refused.reason, refused.remedy)).into()
}

/// Returns the exit code of an error of the library, and what it says.
pub(super) fn refusal(error: PolicyError) -> anyhow::Error {
    if is_denied(&error) && !rustix::process::geteuid().is_root() {
        let message =
            format!("{:#}: only root may; nothing was done: run it again as root", anyhow::Error::new(error));
        return Refusal::new(Exit::Refused, message).into();
    }
    let exit = match &error {
        // A plan that is not there was not typed right.
        PolicyError::Plan(PlanError::File(FileError { operation: "read the plan", .. })) => Exit::Usage,
        error => error.kind().into(),
    };
    Refusal::because(exit, error).into()
}

/// Returns true if the system refused it to this user.
fn is_denied(error: &PolicyError) -> bool {
    let mut sources = std::iter::successors(Some(error as &dyn std::error::Error), |error| error.source());
    let denied = |error: &std::io::Error| error.kind() == std::io::ErrorKind::PermissionDenied;
    sources.any(|error| error.downcast_ref().is_some_and(denied))
}
