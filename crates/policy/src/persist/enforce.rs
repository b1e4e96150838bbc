//! What has to be planned so that every wish holds: at boot, after sleep, and when a disk appears.

use std::collections::BTreeMap;

use super::wish::Wish;
use crate::device::Reader;
use crate::state::State;

/// The disks of all wishes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Enforcement {
    /// The names of the disks for each state that is wanted: one plan each. Those that are there already are in it, too; a
    /// plan leaves them unchanged.
    pub wanted: BTreeMap<State, Vec<String>>,
    /// The identities of disks that are not there.
    pub absent: Vec<String>,
}

/// Looks for the disks of the wishes; with `only`, for the wish of the disk of that name alone.
pub fn enforcement(reader: &Reader<'_>, wishes: &[Wish], only: Option<&str>) -> Enforcement {
    let mut found = Enforcement::default();
    let one = only.map(|name| reader.disk(name).map(|disk| disk.identity));
    for wish in wishes {
        let meant = match &one {
            Some(identity) => identity.as_deref() == Some(wish.identity.as_str()),
            None => true,
        };
        if !meant {
            continue;
        }
        match reader.find(&wish.identity) {
            Some(disk) => found.wanted.entry(wish.state).or_default().push(disk.name),
            None => found.absent.push(wish.identity.clone()),
        }
    }
    found
}
