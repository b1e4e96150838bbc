//! What is kept of a cache beside its devices: a small JSON by name, with the paths of the devices. What the devices say of
//! themselves decides; this only says where they are.

use std::path::{Path, PathBuf};

use plumb_block::Bytes;
use plumb_cache::{Layout, Mode, Settings, Uuid};
use plumb_linux::whole_file;
use serde::{Deserialize, Serialize};

use super::create::SEGMENT;
use crate::error::{Error, Result};

/// Where a cache is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheConfig {
    /// Always [`CacheConfig::SCHEMA`].
    pub schema: String,
    /// The name that it is served under.
    pub name: String,
    /// Names the cache for ever.
    pub uuid: Uuid,
    /// Names the backing device for ever.
    pub backing_uuid: Uuid,
    /// The mode that it is served in.
    pub mode: Mode,
    /// How several legs share the log.
    pub layout: Layout,
    /// The bytes used of each leg.
    pub size: u64,
    /// The device that is cached: a path that stays when the kernel's names change, where there is one.
    pub backing: String,
    /// Where the backing device says which cache it needs.
    pub marker: MarkerPlace,
    /// The devices of the log, in order.
    pub legs: Vec<String>,
}

/// Where the backing device says which cache it needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MarkerPlace {
    /// An extended attribute of a file.
    Attribute,
    /// The last 4096 bytes of a device, or of a file without attributes; the cache is that much smaller.
    LastBlock,
}

impl CacheConfig {
    /// The name and version of the document.
    pub const SCHEMA: &str = "plumb/cache-config/1";

    /// What the cache was made with.
    pub(super) const fn settings(&self) -> Settings {
        Settings {
            cache: self.uuid,
            backing: self.backing_uuid,
            size: Bytes(self.size),
            segment: SEGMENT,
            layout: self.layout,
        }
    }

    /// The cache of this name in `directory`.
    ///
    /// # Errors
    /// If there is none, or the file is none of ours.
    pub fn load(directory: &Path, name: &str) -> Result<Self> {
        let path = Self::path(directory, name);
        let shown = format!("cache:{name}");
        let bytes = whole_file::read(&path).map_err(|error| Error::file(&shown, &error))?;
        let Some(bytes) = bytes else {
            let known = Self::names(directory)?;
            let remedy = if known.is_empty() {
                "`plumb cache create` makes one".to_owned()
            } else {
                format!("there are: {}", known.join(", "))
            };
            return Err(Error::new(crate::Kind::NotFound, shown, "there is no cache of this name", remedy));
        };
        serde_json::from_slice(&bytes).ok().filter(|config: &Self| config.schema == Self::SCHEMA).ok_or_else(
            || {
                let found =
                    format!("{} is no configuration of a cache that this plumb knows", path.display());
                Error::usage(
                    &shown,
                    found,
                    "use the plumb that wrote it, or remove it and make the cache known again",
                )
            },
        )
    }

    /// Makes this the configuration of its name, durably.
    ///
    /// # Errors
    /// The file system's.
    pub fn save(&self, directory: &Path) -> Result<()> {
        let failed = |error| Error::file(&format!("cache:{}", self.name), &error);
        let mut text = serde_json::to_vec_pretty(self).map_err(|error| {
            Error::usage(&self.name, error.to_string(), "name devices whose paths are UTF-8")
        })?;
        text.push(b'\n');
        whole_file::make_directory(directory, 0o700).map_err(failed)?;
        whole_file::replace(&Self::path(directory, &self.name), &text, 0o600).map_err(failed)
    }

    /// Forgets the cache. Its devices stay as they are.
    ///
    /// # Errors
    /// The file system's.
    pub fn forget(directory: &Path, name: &str) -> Result<()> {
        let removed = whole_file::remove(&Self::path(directory, name));
        removed.map(drop).map_err(|error| Error::file(&format!("cache:{name}"), &error))
    }

    /// The names of all caches in `directory`, in order.
    ///
    /// # Errors
    /// The file system's.
    pub fn names(directory: &Path) -> Result<Vec<String>> {
        let found = whole_file::list(directory)
            .map_err(|error| Error::file(&directory.display().to_string(), &error))?;
        let name = |path: PathBuf| Some(path.file_name()?.to_str()?.strip_suffix(".json")?.to_owned());
        let mut names: Vec<String> = found.into_iter().filter_map(name).collect();
        names.sort();
        Ok(names)
    }

    fn path(directory: &Path, name: &str) -> PathBuf {
        directory.join(format!("{name}.json"))
    }
}

/// Where the caches of this user are kept: `$STATE_DIRECTORY/cache` if a service manager set that, `/var/lib/plumb/cache` for root,
/// else `plumb/cache` below `$XDG_STATE_HOME` or `~/.local/state`.
pub fn directory() -> PathBuf {
    let of = |variable| std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    let user = || {
        let home = of("XDG_STATE_HOME").or_else(|| of("HOME").map(|home| home.join(".local/state")));
        home.unwrap_or_else(std::env::temp_dir).join("plumb")
    };
    let root = || rustix::process::geteuid().is_root().then(|| PathBuf::from("/var/lib/plumb"));
    of("STATE_DIRECTORY").or_else(root).unwrap_or_else(user).join("cache")
}
