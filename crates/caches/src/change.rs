//! Changes to the log of an open cache: another device in place of a leg, another log, and more space.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use plumb_block::{Bytes, ErrorKind, Time};
use plumb_cache::{Cache, LOG_BLOCK, Layout, NewLog, State, driver};
use plumb_guard::cache::config::{self, CacheConfig, NewDevices};
use plumb_guard::cache::device_place::DevicePlace;
use plumb_guard::{ByteExtent, Error, Intent, Permission, Result};
use plumb_text::shell_word;

use crate::create::{guarded, in_whole_blocks, without_made};
use crate::laying_out::{LayoutObserver, may_hold_log_of, reserve};
use crate::member::Member;
use crate::named::{NamedCache, refused};
use crate::new_files::{self, LogToMake};
use crate::placement::{are_different, keeps_unflushed};

impl NamedCache {
    /// Runs `make`, which creates those files `typed` of a log that are missing. If this process is killed
    /// before the files are in use, they are removed later.
    ///
    /// # Errors
    /// Returns the error of `make`, or of recording the files.
    pub(crate) fn with_new_files<T>(&self, typed: &[String], make: impl FnOnce() -> Result<T>) -> Result<T> {
        let CacheConfig { name, uuid, backing, .. } = self.config().clone();
        let places = DevicePlace::parse_all(typed)?;
        let directory = config::directory();
        let log = LogToMake { directory: &directory, name: &name, cache: uuid, backing: &backing };
        new_files::while_made(&log, &places, make)
    }

    /// Replaces a leg with the device `typed`, if the guard permits overwriting it. A file is laid out first.
    /// The log is copied to the device after this returns. A leg may be replaced by itself.
    ///
    /// # Errors
    /// If the device is refused, or with EINTR if laying out was stopped. A file that was created is removed
    /// again, and the configuration is unchanged; but the leg stays retired if the new device failed after
    /// that.
    pub fn replace_leg(
        &self,
        leg: usize,
        typed: &str,
        permission: &Permission,
        laying_out: &mut LayoutObserver<'_>,
    ) -> Result<()> {
        let (shown, before) = (self.shown(), self.config().clone());
        let Some(old) = before.legs.get(leg) else {
            let (found, count) = (format!("its log has no device {leg}"), before.legs.len());
            return Err(Error::usage(&shown, found, format!("name one of 0 to {}, or its path", count - 1)));
        };
        let new = DevicePlace::parse(typed)?;
        let others = before.legs.iter().enumerate().filter(|(number, _)| *number != leg);
        let others = others.map(|(_, place)| place.clone());
        let backing = DevicePlace::whole(&before.backing);
        are_different(&others.chain([backing, new.clone()]).collect::<Vec<_>>())?;
        let (size, own) = (Bytes(before.size), before.uuid);
        let mut open = || {
            let time = Time::real();
            let made = guarded(std::slice::from_ref(&new), size, permission, Some(own), &time)?;
            let taken = Member::opened(&new, Intent::WRITE, &time).and_then(|member| {
                may_hold_log_of(self.config().mode, &member.path)?;
                member.reserve_for_log(size)?;
                member.take_for_log(size, Some(&mut *laying_out)).map(|()| member)
            });
            match taken {
                Ok(member) => Ok((member, made)),
                Err(error) => Err(without_made(error, made)),
            }
        };
        let is_same = is_same(&new, old);
        // A new device is opened before the leg is retired, so that an unusable one retires nothing. The old
        // device can be opened only after that.
        let member = if is_same { None } else { Some(open()?) };
        let room = match CacheConfig::reserve(&config::directory()) {
            Ok(room) => room,
            Err(error) => return Err(without_made(error, member.map(|(_, made)| made).unwrap_or_default())),
        };
        if let Err(error) = self.device.retire_leg(leg) {
            let (error, made) = (refused(&shown, &error), member.map(|(_, made)| made));
            return Err(without_made(error, made.unwrap_or_default()));
        }
        self.files()[leg] = None;
        let (new, made) = member.map_or_else(open, Ok)?;
        let place_is = |place: DevicePlace| {
            let mut config = self.config();
            config.legs[leg] = place;
            config.save(&config::directory())
        };
        let known = || {
            drop(room);
            place_is(new.place()).map_err(|error| {
                plumb_block::Error::new(ErrorKind::Invalid, "keep the configuration of", &shown)
                    .because(error.to_string())
            })
        };
        let replaced = self.device.replace_leg(leg, Arc::clone(&new.device), known);
        replaced.map_err(|error| {
            let error = refused(&shown, &error).after_clearing_up(place_is(old.clone()));
            without_made(error, made)
        })?;
        self.files()[leg] = new.file().cloned();
        Ok(())
    }

    /// Replaces the log, which may be read-only, with a new one on the devices `typed`. Everything in the
    /// present log is destaged first, and writes of clients bypass it meanwhile. A process killed in between
    /// leaves either the old log, which is no longer written, or the new one. Does nothing if the log is on
    /// these devices already.
    ///
    /// # Errors
    /// If the devices are refused, or with EINTR if the operation was stopped. A log that is no longer
    /// written stays so until this is repeated.
    pub fn replace_log(
        &self,
        typed: &[String],
        size: Option<Bytes>,
        permission: &Permission,
        laying_out: &mut LayoutObserver<'_>,
    ) -> Result<()> {
        let (shown, before) = (self.shown(), self.config().clone());
        let size = size.unwrap_or(Bytes(before.size));
        in_whole_blocks(size)?;
        // A log that is no longer written cannot record that an unreadable place was overwritten.
        let unreadable = self.device.look(Cache::status).map(|status| status.unreadable).unwrap_or_default();
        if !unreadable.is_empty() {
            return Err(self.not_everything(&shown, &unreadable));
        }
        let places = DevicePlace::parse_all(typed)?;
        if self.has_log(&places, size) {
            return Ok(());
        }
        let backing = [DevicePlace::whole(&before.backing)];
        are_different(&[&places[..], &before.legs, &backing].concat())?;
        let layout = if typed.len() > 1 { before.layout } else { Layout::Mirror };
        let new = NewLog { size, layout };
        let time = Time::real();
        let made = guarded(&places, size, permission, Some(before.uuid), &time)?;
        let refused = |error| refused(&shown, &error);
        let directory = config::directory();
        // Space for the configuration that names both logs, and for the one after it.
        let reserve = || Ok([CacheConfig::reserve(&directory)?, CacheConfig::reserve(&directory)?]);
        let ready =
            self.open_new_log(&places, new, &time, laying_out).and_then(|legs| Ok((legs, reserve()?)));
        let (legs, [room, next_room]) = ready.map_err(|error| without_made(error, made))?;
        self.device.with(Cache::retire_log).map_err(refused)?;
        self.wait_until_spent(laying_out)?;
        let devices = legs.iter().map(|leg| Arc::clone(&leg.device)).collect();
        // The configuration may name the new log even if the move fails: the mark on the backing device
        // decides which log is valid.
        let named = || {
            drop(room);
            let mut config = self.config();
            config.moves_to =
                Some(NewDevices { legs: legs.iter().map(Member::place).collect(), layout, size: size.0 });
            config.save(&directory).map_err(|error| {
                plumb_block::Error::new(ErrorKind::Invalid, "keep the configuration of", &shown)
                    .because(error.to_string())
            })
        };
        let old = self.device.move_log(new, devices, named).map_err(refused)?;
        *self.files() = legs.iter().map(|leg| leg.file().cloned()).collect();
        let moved = self.config().clone().after_move(false);
        *self.config() = moved.clone();
        drop(next_room);
        moved.save(&directory)?;
        // A device that cannot be written keeps its superblocks; it is refused later as an older log.
        for (leg, place) in old.iter().zip(&before.legs) {
            driver::erase(&**leg).map(|()| place.mark_as_free()).unwrap_or_default();
        }
        Ok(())
    }

    /// Opens and lays out the devices of a log to which the cache can move.
    fn open_new_log(
        &self,
        places: &[DevicePlace],
        new: NewLog,
        time: &Time,
        laying_out: &mut LayoutObserver<'_>,
    ) -> Result<Vec<Member>> {
        let mode = self.config().mode;
        let open = |place: &DevicePlace| {
            let member = Member::opened(place, Intent::WRITE, time)?;
            may_hold_log_of(mode, &member.path)?;
            keeps_unflushed(mode, &member.path)?;
            member.is_apart_from(&self.backing).map(|()| member)
        };
        let legs = places.iter().map(open).collect::<Result<Vec<_>>>()?;
        let infos: Vec<_> = legs.iter().map(|leg| leg.device.info()).collect();
        legs.iter().try_for_each(|leg| leg.reserve_for_log(new.size))?;
        legs.iter().try_for_each(|leg| leg.take_for_log(new.size, Some(&mut *laying_out)))?;
        self.device
            .look(|core| core.may_move(new, &infos))
            .map_err(|error| refused(&self.shown(), &error))?;
        Ok(legs)
    }

    /// Returns true if the cache writes a log that uses `size` of each of `places`.
    fn has_log(&self, places: &[DevicePlace], size: Bytes) -> bool {
        let before = self.config().clone();
        let is_there = places.len() == before.legs.len()
            && places.iter().zip(&before.legs).all(|(new, old)| is_same(new, old));
        let is_written = || self.device.look(Cache::status).is_some_and(|status| status.log_error.is_none());
        is_there && size.0 == before.size && is_written()
    }

    /// Waits until everything in the log is on the backing device.
    fn wait_until_spent(&self, laying_out: &LayoutObserver<'_>) -> Result<()> {
        let shown = self.shown();
        let ended = self.device.wait_for(|core| {
            let status = core.status();
            let is_stuck = status.as_ref().is_none_or(|status| {
                status.state != State::Serving
                    || (status.dirty.0 + status.zeroed.0 == 0 && status.destage_error.is_some())
            });
            let is_over = is_stuck || core.is_log_spent() || laying_out.stop.load(Ordering::Relaxed);
            is_over.then(|| if core.is_log_spent() { Ok(()) } else { Err(Box::new((core.state(), status))) })
        });
        let Err(stuck) = ended.map_err(|error| Error::device(&shown, &error))? else { return Ok(()) };
        let (state, status) = *stuck;
        let why = status.as_ref().and_then(|status| status.destage_error.as_deref());
        Err(match (state, &status, why) {
            (State::Serving, ..) if laying_out.stop.load(Ordering::Relaxed) => {
                Error::os(&shown, "empty", rustix::io::Errno::INTR)
            }
            (State::Serving, Some(status), _) if !status.unreadable.is_empty() => {
                self.not_everything(&shown, &status.unreadable)
            }
            (State::Serving, _, Some(why)) => {
                let name = shell_word(&self.config().name);
                let remedy = format!("detach the cache (`plumb cache detach {name}`) and create it again");
                Error::refused(&shown, why, remedy)
            }
            (State::Latched { because } | State::Failed { because }, ..) => {
                Error::refused(&shown, because, "")
            }
            _ => Error::refused(&shown, "the cache stopped", "do it again"),
        })
    }

    /// Grows the log to `size` on each device. The log grows after this returns; the status says when. Files
    /// are extended and laid out, and the configuration names the size, before the log is told. A process
    /// killed in between leaves longer files, with which the cache opens and the operation can be repeated.
    ///
    /// # Errors
    /// If the log would not grow, or a device is too small, or with EINTR if laying out was stopped. The
    /// files then have their old length, and the configuration is unchanged.
    pub fn grow(&self, size: Bytes, laying_out: &mut LayoutObserver<'_>) -> Result<()> {
        in_whole_blocks(size)?;
        let (shown, CacheConfig { name, legs, size: before, .. }) = (self.shown(), self.config().clone());
        // An order that was interrupted after the growth is given again.
        if before == size.0 && self.device.look(|core| core.is_grown_to(size)) {
            return Ok(());
        }
        legs.iter().try_for_each(|place| place.has_room(size, &name))?;
        let files = self.log_files()?;
        let mut grow = || {
            let refused = |error| refused(&shown, &error);
            files.iter().try_for_each(|file| reserve(&file.file, file.part, &file.path, size))?;
            self.device.may_grow(size).map_err(refused)?;
            files.iter().try_for_each(|file| file.lay_out(Bytes(before), size, laying_out))?;
            self.save_size(size.0)?;
            self.device.grow(size).map_err(refused)
        };
        grow().map_err(|error| {
            let error = error.after_clearing_up(self.save_size(before));
            files.iter().fold(error, |error, file| error.after_clearing_up(file.undo()))
        })
    }

    /// Returns the files of the log with their present lengths. A lost leg is left out.
    fn log_files(&self) -> Result<Vec<LogFile>> {
        let places = self.config().legs.clone();
        let files = self.files().clone();
        let files = places.into_iter().zip(files).filter_map(|(place, file)| Some((place, file?)));
        let with_length = |(place, file): (DevicePlace, Arc<OwnedFd>)| {
            let DevicePlace { path, part } = place;
            let stat = rustix::fs::fstat(&file).map_err(|errno| Error::os(&path, "make longer", errno))?;
            let before = part.map_or(stat.st_size.cast_unsigned(), |part| part.length);
            Ok(LogFile { file, path, part, before: Bytes(before) })
        };
        files.map(with_length).collect()
    }

    fn save_size(&self, size: u64) -> Result<()> {
        let (mut config, directory) = (self.config(), config::directory());
        config.size = size;
        // A configuration that is already there needs no space in a full directory.
        match CacheConfig::load(&directory, &config.name) {
            Ok(there) if there == *config => Ok(()),
            _ => config.save(&directory),
        }
    }
}

/// Returns true if both places are the same part of the same device or file.
fn is_same(new: &DevicePlace, old: &DevicePlace) -> bool {
    let place = |path: &str| std::fs::canonicalize(path).ok();
    new.is_same_part(old) && place(&new.path).is_some_and(|at| Some(at) == place(&old.path))
}

/// File of the log that can be extended, or a part of a file, which keeps its length.
struct LogFile {
    file: Arc<OwnedFd>,
    path: String,
    part: Option<ByteExtent>,
    before: Bytes,
}

impl LogFile {
    /// Lays out the space between `used`, which the log uses already, and `size`. The superblocks at the end
    /// of the file are in use and are left alone, in case the log does not grow. The new space comes first,
    /// because that is where the file system may be full.
    fn lay_out(&self, used: Bytes, size: Bytes, laying_out: &mut LayoutObserver<'_>) -> Result<()> {
        let end = self.before.round_down(Bytes(LOG_BLOCK));
        let superblocks = Bytes(end.0.saturating_sub(2 * LOG_BLOCK));
        let parts = [(end.max(used), size), (used, superblocks.min(size))];
        let parts: Vec<_> = parts.into_iter().filter(|(from, to)| from < to).collect();
        let begin = Bytes(self.part.map_or(0, |part| part.offset));
        laying_out.write(&self.file, begin, &self.path, &parts)
    }

    /// Restores the length of the file. The log has not used the rest.
    fn undo(&self) -> Result<()> {
        if self.part.is_some() {
            return Ok(());
        }
        rustix::fs::ftruncate(&self.file, self.before.0)
            .map_err(|errno| Error::os(&self.path, "make as long as before", errno))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    /// Lays out a file of nines of this length from `used` to `size`, and returns the numbers of the blocks
    /// that are zeroes then.
    fn zeroed(length: u64, used: u64, size: u64) -> Vec<u64> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        std::fs::write(&path, vec![9; length as usize]).unwrap();
        let file = std::fs::File::options().read(true).write(true).open(&path).unwrap();
        let log = LogFile {
            file: Arc::new(file.into()),
            path: "log".to_owned(),
            part: None,
            before: Bytes(length),
        };
        let mut told = Bytes(0);
        let mut progress = |_: &str, done: Bytes, _: Bytes| told = done;
        let laying_out = &mut LayoutObserver { stop: &AtomicBool::new(false), progress: &mut progress };
        log.lay_out(Bytes(used), Bytes(size), laying_out).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(bytes.len() as u64, length.max(size));
        let is_zero = |block: &[u8]| block.iter().all(|byte| *byte == 0);
        let zeroed: Vec<_> = (0..).zip(bytes.chunks(4096)).filter(|(_, block)| is_zero(block)).collect();
        assert_eq!(told.0, 4096 * zeroed.len() as u64, "progress ends with all of it");
        zeroed.into_iter().map(|(block, _)| block).collect()
    }

    #[test]
    fn superblocks_at_the_end_of_a_file_stay_whether_it_becomes_longer_or_not() {
        const BLOCK: u64 = 4096;
        // Length of the file: the log before, the log after, longer than that, and in between.
        assert_eq!(zeroed(16 * BLOCK, 16 * BLOCK, 32 * BLOCK), (16..32).collect::<Vec<_>>());
        assert_eq!(zeroed(32 * BLOCK, 16 * BLOCK, 32 * BLOCK), (16..30).collect::<Vec<_>>());
        assert_eq!(zeroed(64 * BLOCK, 16 * BLOCK, 32 * BLOCK), (16..32).collect::<Vec<_>>());
        assert_eq!(zeroed(24 * BLOCK, 16 * BLOCK, 32 * BLOCK), (16..22).chain(24..32).collect::<Vec<_>>());
        // The last two whole blocks of the file stay.
        assert_eq!(
            zeroed(24 * BLOCK + 100, 16 * BLOCK, 32 * BLOCK),
            (16..22).chain(24..32).collect::<Vec<_>>()
        );
    }
}
