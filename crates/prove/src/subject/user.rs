//! User who runs programs.

use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use plumb_linux::child;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result, cannot};

/// User of this machine, by name and by number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct User {
    name: String,
    user: u32,
    group: u32,
}

impl User {
    /// Finds a user by name or number in any user database of this machine, by id(1).
    ///
    /// # Errors
    /// A usage error if the user does not exist, or this process may not run programs as another user.
    pub fn named(name: &str) -> Result<Self> {
        let id = |what: &str| -> Result<String> {
            let mut command = Command::new("id");
            command.args([what, "--", name]);
            let output = child::output(command).map_err(cannot("run id(1)"))?;
            let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            match output.status.success() {
                true => Ok(text),
                false => Err(Error::usage(format!("--user {name}: there is no such user"))),
            }
        };
        let number = |text: String| {
            text.parse()
                .map_err(|_| Error::usage(format!("--user {name}: id(1) says `{text}`, not a number")))
        };
        let found = Self { name: id("-un")?, user: number(id("-u")?)?, group: number(id("-g")?)? };
        if !rustix::process::geteuid().is_root() {
            return Err(Error::usage(format!("--user {name}: only root may run programs as another user")));
        }
        Ok(found)
    }

    /// Returns the name of the user.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Makes a command run as the user, with its main group and no other.
    pub(crate) fn apply(&self, command: &mut Command) {
        command.uid(self.user).gid(self.group);
    }

    /// Changes the owner of a file, a directory, or a symbolic link itself to the user.
    pub(crate) fn own(&self, path: &Path) -> Result<()> {
        let owned = std::os::unix::fs::lchown(path, Some(self.user), Some(self.group));
        owned.map_err(cannot(format!("give {} to {}", path.display(), self.name)))
    }
}
