//! What changes the log of a cache that is open: another device in the place of a leg, and more room.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use plumb_block::{Bytes, ErrorKind, RealClock, Time};
use rustix::fs::{Mode, OFlags};

use super::config;
use super::create::{guarded, in_whole_blocks, without_made};
use super::member::{Member, allocate};
use super::named::{NamedCache, refused};
use crate::error::{Error, Result};
use crate::permission::Permission;

impl NamedCache {
    /// Puts the device that is called `typed` into the place of a leg, if the guard allows that what is on it goes. It is copied to after
    /// this returns. A leg may be replaced by itself.
    ///
    /// # Errors
    /// The refusal; the leg is then out if the new device could not take its place. A file that was made for it is taken away again, and the
    /// configuration is as it was.
    pub fn replace_leg(&mut self, leg: usize, typed: &str, permission: &Permission) -> Result<()> {
        let shown = format!("cache:{}", self.config.name);
        let Some(old) = self.config.legs.get(leg).cloned() else {
            let (found, count) = (format!("its log has no device {leg}"), self.config.legs.len());
            return Err(Error::usage(&shown, found, format!("name one of 0 to {}, or its path", count - 1)));
        };
        let (size, own) = (Bytes(self.config.size), self.config.uuid);
        let open = || {
            let time = Time::Real(Arc::new(RealClock::start()));
            let made = guarded(&[typed.to_owned()], size, (permission, Some(own)), &time)?;
            match Member::open(typed, &time).and_then(|member| member.take_for_log(size).map(|()| member)) {
                Ok(member) => Ok((member, made)),
                Err(error) => Err(without_made(error, made)),
            }
        };
        let place = |path: &str| std::fs::canonicalize(path).ok();
        let is_same = place(typed).is_some_and(|new| Some(new) == place(&old));
        // One that is of no use takes no leg out. The old device itself is free only when it is.
        let new = if is_same { None } else { Some(open()?) };
        if let Err(error) = self.device.retire_leg(leg) {
            let (error, made) = (refused(&shown, &error), new.map(|(_, made)| made));
            return Err(without_made(error, made.unwrap_or_default()));
        }
        let (new, made) = new.map_or_else(open, Ok)?;
        let config = &mut self.config;
        let known = || {
            config.legs[leg].clone_from(&new.path);
            config.save(&config::directory()).map_err(|error| {
                plumb_block::Error::new(ErrorKind::Invalid, "keep the configuration of", &shown)
                    .because(error.to_string())
            })
        };
        let replaced = self.device.replace_leg(leg, Arc::clone(&new.device), known);
        replaced.map_err(|error| {
            self.config.legs[leg] = old;
            let error = refused(&shown, &error).after_clearing_up(self.config.save(&config::directory()));
            without_made(error, made)
        })
    }

    /// Has the log take `size` of each device, which happens after this returns: the status says when. Files are made longer, and the
    /// configuration names the size, before the log is told; a process that is killed in between leaves longer files, which are no obstacle
    /// to open the cache and to do it again.
    ///
    /// # Errors
    /// If the log would not become larger, or a device has not that much; files and configuration are as they were then.
    pub fn grow(&mut self, size: Bytes) -> Result<()> {
        in_whole_blocks(size)?;
        let (shown, before) = (format!("cache:{}", self.config.name), self.config.size);
        let mut longer = Vec::new();
        let grown = self.lengthen(size, &mut longer);
        let grown = grown.and_then(|()| self.name_size(before.max(size.0)));
        let grown = grown.and_then(|()| self.device.grow(size).map_err(|error| refused(&shown, &error)));
        grown.map_err(|error| {
            let error = error.after_clearing_up(self.name_size(before));
            longer.into_iter().fold(error, |error, file: Longer| error.after_clearing_up(file.undo()))
        })
    }

    /// Makes the files of the log at least `size` long.
    fn lengthen(&self, size: Bytes, longer: &mut Vec<Longer>) -> Result<()> {
        for path in &self.config.legs {
            // A leg that is lost is not asked for room.
            let Ok(file) = rustix::fs::open(path.as_str(), OFlags::RDWR | OFlags::NONBLOCK, Mode::empty())
            else {
                continue;
            };
            let stat = rustix::fs::fstat(&file).map_err(|errno| Error::os(path, "make longer", errno))?;
            let before = stat.st_size.cast_unsigned();
            if rustix::fs::FileType::from_raw_mode(stat.st_mode).is_file() && before < size.0 {
                allocate(&file, path, size)?;
                longer.push(Longer { file, path: path.clone(), before });
            }
        }
        Ok(())
    }

    fn name_size(&mut self, size: u64) -> Result<()> {
        self.config.size = size;
        self.config.save(&config::directory())
    }
}

/// A file of the log that was made longer.
struct Longer {
    file: OwnedFd,
    path: String,
    before: u64,
}

impl Longer {
    /// Makes it as long as it was. The log has not used the rest.
    fn undo(self) -> Result<()> {
        rustix::fs::ftruncate(&self.file, self.before)
            .map_err(|errno| Error::os(&self.path, "make as long as before", errno))
    }
}
