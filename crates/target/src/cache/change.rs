//! What changes the log of a cache that is open: another device in the place of a leg, and more room.

use std::sync::Arc;

use plumb_block::{Bytes, ErrorKind, RealClock, Time};
use rustix::fs::{Mode, OFlags};

use super::config;
use super::create::guarded;
use super::member::{Member, allocate};
use super::named::{NamedCache, refused};
use crate::error::{Error, Result};
use crate::permission::Permission;

impl NamedCache {
    /// Puts the device that is called `typed` into the place of a leg, if the guard allows that what is on it goes. It is copied to after
    /// this returns. A leg may be replaced by itself.
    ///
    /// # Errors
    /// The refusal; the leg is then out if the new device could not take its place.
    pub fn replace_leg(&mut self, leg: usize, typed: &str, permission: &Permission) -> Result<()> {
        let shown = format!("cache:{}", self.config.name);
        let Some(old) = self.config.legs.get(leg).cloned() else {
            let (found, count) = (format!("its log has no device {leg}"), self.config.legs.len());
            return Err(Error::usage(&shown, found, format!("name one of 0 to {}, or its path", count - 1)));
        };
        let size = Bytes(self.config.size);
        let open = || {
            let time = Time::Real(Arc::new(RealClock::start()));
            let mut made = guarded(&[typed.to_owned()], size, permission, &time)?;
            let member = Member::open(typed, &time).and_then(|member| member.allocate(size).map(|()| member));
            member.map_err(|error| {
                made.iter_mut().fold(error, |error, leg| error.after_clearing_up(leg.remove_if_made()))
            })
        };
        let place = |path: &str| std::fs::canonicalize(path).ok();
        let is_same = place(typed).is_some_and(|new| Some(new) == place(&old));
        // One that is of no use takes no leg out. The old device itself is free only when it is.
        let new = if is_same { None } else { Some(open()?) };
        self.device.retire_leg(leg).map_err(|error| refused(&shown, &error))?;
        let new = new.map_or_else(open, Ok)?;
        let config = &mut self.config;
        let known = || {
            config.legs[leg].clone_from(&new.path);
            config.save(&config::directory()).map_err(|error| {
                plumb_block::Error::new(ErrorKind::Invalid, "keep the configuration of", &shown)
                    .because(error.to_string())
            })
        };
        let replaced = self.device.replace_leg(leg, Arc::clone(&new.device), known);
        replaced.map_err(|error| refused(&shown, &error))
    }

    /// Has the log take `size` of each device, which happens after this returns: the status says when. Files are made longer.
    ///
    /// # Errors
    /// If the log would not become larger, or a device has not that much.
    pub fn grow(&mut self, size: Bytes) -> Result<()> {
        let shown = format!("cache:{}", self.config.name);
        if size > Bytes(self.config.size) {
            for path in &self.config.legs {
                let failed = |errno| Error::os(path, "make longer", errno);
                let file = rustix::fs::open(path.as_str(), OFlags::RDWR | OFlags::NONBLOCK, Mode::empty());
                // A leg that is lost is not asked for room.
                let Ok(file) = file else { continue };
                let stat = rustix::fs::fstat(&file).map_err(failed)?;
                if rustix::fs::FileType::from_raw_mode(stat.st_mode).is_file() {
                    allocate(&file, path, size)?;
                }
            }
        }
        self.device.grow(size).map_err(|error| refused(&shown, &error))?;
        self.config.size = size.0;
        self.config.save(&config::directory())
    }
}
