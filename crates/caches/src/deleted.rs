//! Files of a served cache that were deleted: they, and the data that only they hold, last until the server
//! ends.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use plumb_block::{Bytes, Error, ErrorKind, Result};
use plumb_cache::{Cache, Layout, LegState, State, Status};
use plumb_guard::cache::known::leads_to;
use plumb_serve::named::Stay;
use plumb_text::shell_word;
use rustix::io::Errno;

use crate::named::NamedCache;

/// Time limit for the file system to resolve a name. Orders to the server wait meanwhile.
const ANSWERS_WITHIN: Duration = Duration::from_secs(1);

/// Returns true if `path` leads to another file than the open one, or nowhere. Any other error of the file
/// system, such as an unreachable server, does not count as deletion.
fn is_deleted(path: &str, file: Option<&Arc<OwnedFd>>) -> bool {
    file.is_some_and(|file| matches!(leads_to(path, file), Ok(false) | Err(Errno::NOENT | Errno::NOTDIR)))
}

impl NamedCache {
    /// Returns true if the backing device is a file that is known to be deleted.
    pub(crate) fn is_backing_deleted(&self) -> bool {
        let (path, file) = (self.config().backing.clone(), self.backing.file().cloned());
        self.backing_name.answer(ANSWERS_WITHIN, move || is_deleted(&path, file.as_ref()))
    }

    /// Returns for each device of the log whether it is a deleted file.
    pub(crate) fn deleted_legs(&self) -> Vec<bool> {
        let (files, places) = (self.files().clone(), self.config().legs.clone());
        places.iter().zip(files).map(|(place, file)| is_deleted(&place.path, file.as_ref())).collect()
    }

    /// Returns true if the log lasts only until the server ends: with this `status`, no leg that it needs
    /// still has its name.
    fn is_log_deleted(&self, status: &Status) -> bool {
        let legs = self.deleted_legs();
        let live = legs.into_iter().zip(&status.legs).filter(|(_, state)| **state == LegState::Live);
        let (deleted, named): (Vec<_>, Vec<_>) = live.partition(|(is_deleted, _)| *is_deleted);
        !deleted.is_empty() && (status.layout != Layout::Mirror || named.is_empty())
    }

    /// Returns the reason why the server must not end now, if there is one, and starts to drain a deleted
    /// log.
    pub(crate) fn stay(&self) -> Option<Stay> {
        if let Some(because) = self.backing_deleted() {
            return Some(Stay { because, passes: false });
        }
        let (state, status) = self.device.look(|core| (core.state(), core.status()));
        let status = status.filter(|status| self.is_log_deleted(status))?;
        let is_empty = status.log_used == Bytes(0) && !status.is_draining;
        let held = only_in_log(&status);
        if is_empty || (held == Bytes(0) && state != State::Serving) {
            return None;
        }
        let cannot = |why: &str| {
            let because = format!(
                "a file of its log was deleted, and {held} that only the log holds would be lost when the server \
                 ends: they cannot be written back ({why}); `plumb cache status {}` says how to keep them, \
                 --cut-off ends the server without",
                shell_word(&self.config().name)
            );
            Some(Stay { because, passes: false })
        };
        match (state, &status.destage_error) {
            (State::Serving, None) => {
                self.device.with(Cache::drain);
                let because = format!(
                    "a file of its log was deleted, so {held} that only the log holds are written back first"
                );
                Some(Stay { because, passes: true })
            }
            (State::Latched { because } | State::Failed { because }, _) => cannot(&because),
            (_, why) => cannot(why.as_deref().unwrap_or("it has stopped")),
        }
    }

    /// Returns a message with a remedy if the backing file is deleted.
    pub(crate) fn backing_deleted(&self) -> Option<String> {
        if !self.is_backing_deleted() {
            return None;
        }
        let config = self.config().clone();
        let name = shell_word(&config.name);
        Some(format!(
            "its backing file {} was deleted or renamed, and goes with the server: bring it back under this name; \
             if it was deleted, copy the data from the device or the export of the cache to another file, then \
             remove the cache with `plumb cache detach {name} --cut-off --discard-dirty {}`",
            config.backing, config.uuid
        ))
    }

    /// Stops the cache because its server ends. Drains a deleted log first, unless `is_forced`.
    ///
    /// # Errors
    /// If stopping fails, or data is lost with a deleted log.
    pub(crate) fn stop_with_server(&self, is_forced: bool) -> Result<()> {
        let is_log_deleted = || self.device.look(Cache::status).filter(|status| self.is_log_deleted(status));
        if !is_forced && is_log_deleted().is_some() {
            self.device.with(Cache::detach);
            self.device.wait_for(|core| {
                let is_failing = core.status().is_none_or(|status| status.destage_error.is_some());
                (is_failing || core.state() != State::Serving).then_some(())
            })?;
        }
        self.stop()?;
        let lost = is_log_deleted().map(|status| only_in_log(&status)).filter(|lost| *lost > Bytes(0));
        lost.map_or(Ok(()), |lost| {
            let because = format!("its log was deleted: {lost} that only the log held are lost");
            Err(Error::new(ErrorKind::Invalid, "keep the data of", self.shown()).because(because))
        })
    }
}

/// Returns the number of bytes that only the log holds.
fn only_in_log(status: &Status) -> Bytes {
    Bytes(status.dirty.0 + status.zeroed.0)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use super::*;

    #[test]
    fn a_file_is_deleted_where_its_name_leads_elsewhere_or_nowhere() {
        let directory = tempfile::tempdir().unwrap();
        let [path, other, link] = ["file", "other", "link"].map(|name| directory.path().join(name));
        let file: Arc<OwnedFd> = Arc::new(File::create(&path).unwrap().into());
        let is_deleted = |path: &Path| is_deleted(path.to_str().unwrap(), Some(&file));
        assert!(!is_deleted(&path));
        // ELOOP stands for the errors of a share whose server is away.
        symlink(&link, &link).unwrap();
        assert!(!is_deleted(&link), "an error says nothing of the name");
        assert!(is_deleted(&path.join("below")), "its directory became a file");
        File::create(&other).unwrap();
        fs::rename(&other, &path).unwrap();
        assert!(is_deleted(&path), "replaced");
        fs::remove_file(&path).unwrap();
        assert!(is_deleted(&path));
    }
}
