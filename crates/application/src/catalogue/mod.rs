//! The profiles, one file each.

mod block_setting;
mod ceph_osd;
mod ceph_osd_hdd;
mod copy;
mod dbf_update;
mod defrag;
mod etcd_wal;
mod file_set;
mod fileserver;
mod jetstress_like;
mod pg_wal;
mod registry_kv;
mod save;
mod sqlite;
mod sqlserver;
#[cfg(test)]
mod tests;
mod tree;
mod unpack;
mod varmail;
mod vm_64k;

use crate::error::Error;
use crate::profile::{Profile, Variant};

pub(crate) use block_setting::BlockSetting;

static PROFILES: [&Profile; 17] = [
    &sqlite::ROLLBACK,
    &sqlite::WAL,
    &pg_wal::PROFILE,
    &etcd_wal::PROFILE,
    &ceph_osd::PROFILE,
    &ceph_osd_hdd::PROFILE,
    &varmail::PROFILE,
    &fileserver::PROFILE,
    &dbf_update::PROFILE,
    &registry_kv::PROFILE,
    &unpack::PROFILE,
    &vm_64k::PROFILE,
    &copy::PROFILE,
    &save::PROFILE,
    &defrag::PROFILE,
    &sqlserver::PROFILE,
    &jetstress_like::PROFILE,
];

/// All profiles.
pub fn profiles() -> &'static [&'static Profile] {
    &PROFILES
}

/// The profile and the variant that were typed: `NAME` or `NAME:VARIANT`.
///
/// # Errors
/// If there is no such profile, or it has no such variant.
pub fn find(typed: &str) -> Result<(&'static Profile, &'static Variant), Error> {
    let (name, variant) =
        typed.split_once(':').map_or((typed, None), |(name, variant)| (name, Some(variant)));
    let profile =
        PROFILES.iter().find(|profile| profile.name == name).ok_or_else(|| Error::UnknownProfile {
            typed: name.to_owned(),
            known: joined(PROFILES.iter().map(|profile| profile.name)),
            hint: hint(name),
        })?;
    let Some(variant) = variant else { return Ok((profile, profile.default_variant())) };
    let found = profile.variant(variant).ok_or_else(|| Error::UnknownVariant {
        profile: profile.name,
        typed: variant.to_owned(),
        known: joined(profile.variants.iter().map(|variant| variant.name)),
    })?;
    Ok((profile, found))
}

/// What to say to those who ask for a benchmark that nobody can run any more.
fn hint(name: &str) -> &'static str {
    if name.to_ascii_lowercase().starts_with("winbench") {
        "; WinBench 99's score cannot be had any more, and none of these is equivalent to it: copy, save, unpack and \
         defrag do what desktop programs do, under names of their own"
    } else {
        ""
    }
}

fn joined<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}
