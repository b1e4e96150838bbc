//! `cache=none,wb:1G`: the target alone, and behind a write-back cache of plumb, which is created for each
//! block, and drained and detached after it.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use plumb_block::Bytes;
use plumb_cache::{Layout, Mode};
use plumb_caches::{CreateWanted, Tuning};
use plumb_targets::Permission;
use plumb_trial::TrialError;

use super::record::Changes;
use super::undo::{Machine, Undo};
use super::{Setting, failed};

/// A level of the factor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheLevel {
    /// The target alone.
    None,
    /// Target behind a cache.
    Cache {
        /// Mode of the cache.
        mode: Mode,
        /// Size of the log.
        size: Bytes,
    },
}

impl FromStr for CacheLevel {
    type Err = String;

    fn from_str(typed: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "`{typed}` is not a level of cache: expected none, wb:SIZE (write-back) or wt:SIZE (write-through), such as wb:1G"
            )
        };
        if typed == "none" {
            return Ok(Self::None);
        }
        let (mode, size) = typed.split_once(':').ok_or_else(wrong)?;
        let mode = match mode {
            "wb" => Mode::WriteBack,
            "wt" => Mode::WriteThrough,
            _ => return Err(wrong()),
        };
        Ok(Self::Cache { mode, size: size.parse().map_err(|_| wrong())? })
    }
}

/// Wanted cache: the cached target, and the place of the log.
#[derive(Debug, Clone)]
pub struct CacheWanted {
    /// The target.
    pub backing: String,
    /// File or block device of the log. A missing file is created, and removed at the end.
    pub log: PathBuf,
    /// Permission that the user gives.
    pub permission: Permission,
}

impl CacheWanted {
    /// Returns a cache in front of `backing` with its log at the path `log`.
    ///
    /// # Errors
    /// If there is no current directory.
    pub fn new(backing: &str, log: &str, permission: &Permission) -> Result<Self, TrialError> {
        let log = std::path::absolute(log).map_err(|error| failed(&error))?;
        Ok(Self { backing: backing.to_owned(), log, permission: permission.clone() })
    }
}

/// Setting of a cache in front of a target.
pub struct CacheSetting {
    changes: Changes,
    wanted: CacheWanted,
    levels: Vec<CacheLevel>,
}

impl CacheSetting {
    /// Returns the setting of these levels of the wanted cache.
    pub fn new(machine: Arc<Machine>, wanted: CacheWanted, levels: Vec<CacheLevel>) -> Self {
        Self { changes: Changes::new(machine), wanted, levels }
    }

    /// Returns the name of the cache that this process makes.
    fn name() -> String {
        format!("compare-{}", std::process::id())
    }

    /// Returns the name of the target behind the cache.
    pub fn target() -> String {
        format!("cache:{}", Self::name())
    }
}

impl Setting for CacheSetting {
    fn set(&mut self, level: usize) -> Result<(), TrialError> {
        // The cache is drained, so that no level starts with data of another one.
        self.changes.restore()?;
        let CacheLevel::Cache { mode, size } = self.levels[level] else { return Ok(()) };
        let CacheWanted { backing, log, permission } = &self.wanted;
        plumb_caches::clear_place_of_marker(backing, permission)?;
        let (name, made) = (Self::name(), (!log.exists()).then(|| log.clone()));
        self.changes.promise(Undo::Cache { name: name.clone(), log: made })?;
        let legs = [log.display().to_string()];
        let wanted = CreateWanted {
            name: &name,
            backing,
            legs: &legs,
            layout: Layout::Mirror,
            size,
            mode,
            tuning: Tuning::default(),
            permission,
            discard_dirty: None,
        };
        plumb_caches::create(&plumb_caches::directory(), &wanted, None)?;
        Ok(())
    }

    fn restore(&mut self) -> Result<(), TrialError> {
        self.changes.restore()
    }

    /// Permits to overwrite the target behind a cache: the guard has judged it when it was opened alone.
    fn permission(&self, level: usize, asked: &Permission) -> Permission {
        match self.levels[level] {
            CacheLevel::None => asked.clone(),
            CacheLevel::Cache { .. } => Permission { overwrite: true, destroy: Vec::new(), ..asked.clone() },
        }
    }
}
