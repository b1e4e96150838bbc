//! The profiles: their texts and numbers from `profiles.toml`, and the programs of those that work on files.

mod ceph_osd_hdd;
mod dbf_update;
mod defrag;
mod desktop;
mod etcd_wal;
mod file_set;
mod pg_wal;
mod replace;
mod rounds;
#[cfg(test)]
mod tests;
mod tree;

use std::sync::LazyLock;

use serde::Deserialize;

use crate::engine::{Program, Setting};
use crate::error::Error;
use crate::profile::{Profile, Variant};

#[derive(Deserialize)]
struct Catalogue {
    profile: Vec<Profile>,
}

static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(|| {
    // Untyped `Table` first: an error in this text needs no position, and a typed parser would double the
    // code.
    let profiles = include_str!("../../profiles.toml").parse().and_then(toml::Table::try_into);
    profiles.expect("the profiles are read by every test")
});

/// Programs by their names in `profiles.toml`.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ProgramName {
    PgWal,
    EtcdWal,
    CephOsdHdd,
    Varmail,
    Fileserver,
    DbfUpdate,
    RegistryKv,
    Save,
    Unpack,
    Copy,
    Defrag,
    Desktop,
}

impl ProgramName {
    /// Creates the program.
    pub(crate) fn make(self, setting: &Setting) -> Box<dyn Program> {
        match self {
            Self::PgWal => Box::new(pg_wal::PgWal::new(setting)),
            Self::EtcdWal => Box::new(etcd_wal::EtcdWal),
            Self::CephOsdHdd => Box::new(ceph_osd_hdd::Osd::new(setting)),
            Self::Varmail => Box::new(file_set::FileSet::varmail(setting)),
            Self::Fileserver => Box::new(file_set::FileSet::fileserver(setting)),
            Self::DbfUpdate => Box::new(dbf_update::DbfUpdate::new(setting)),
            Self::RegistryKv => Box::new(replace::Replace::registry_kv(setting)),
            Self::Save => Box::new(replace::Replace::save(setting)),
            Self::Unpack => Box::new(rounds::Rounds::unpack(setting)),
            Self::Copy => Box::new(rounds::Rounds::copy(setting)),
            Self::Defrag => Box::new(defrag::Defrag::new(setting)),
            Self::Desktop => Box::new(desktop::Desktop::new(setting)),
        }
    }
}

/// Returns all profiles.
pub fn profiles() -> &'static [Profile] {
    &CATALOGUE.profile
}

/// Returns the profile and the variant for `NAME` or `NAME:VARIANT`.
///
/// # Errors
/// If there is no such profile, or it has no such variant.
pub fn find(typed: &str) -> Result<(&'static Profile, &'static Variant), Error> {
    let (name, variant) =
        typed.split_once(':').map_or((typed, None), |(name, variant)| (name, Some(variant)));
    let profile = profiles().iter().find(|profile| profile.name == name).ok_or_else(|| {
        let known = joined(profiles().iter().map(|profile| &*profile.name));
        Error::Unsuited(format!("there is no profile `{name}`: expected one of {known}{}", hint(name)))
    })?;
    let Some(variant) = variant else { return Ok((profile, profile.default_variant())) };
    let found = profile.variant(variant).ok_or_else(|| {
        let known = joined(profile.variants.iter().map(|variant| &*variant.name));
        Error::Unsuited(format!(
            "profile {} has no variant `{variant}`: expected one of {known}",
            profile.name
        ))
    })?;
    Ok((profile, found))
}

/// Returns a hint for the name of a benchmark that can no longer be run.
fn hint(name: &str) -> &'static str {
    if name.to_ascii_lowercase().starts_with("winbench") {
        "; WinBench 99 can no longer be run, and no profile reproduces its score: desktop, copy, save, \
         unpack and defrag do what desktop programs do, under their own names"
    } else {
        ""
    }
}

fn joined<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}
