//! Test of the roles of a drive's blocks: their files, or their parts of the file system.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;

use plumb_prove::file_system::{FileSystem, FileSystemOptions};
use plumb_prove::roles::Roles;
use plumb_testkit::loop_device::LoopDevice;

/// Finds the data of a file on the drive, and queries its role.
fn file_is_found_by_its_bytes(file_system: FileSystem, journal: &str) {
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("image");
    File::create(&image).unwrap().set_len(file_system.size_min_mib().max(64) << 20).unwrap();
    let Some(device) = LoopDevice::over(&image, &[]) else { return };
    if let Err(reason) = look(file_system, device.as_path(), directory.path(), journal) {
        plumb_testkit::skip(&reason);
    }
}

fn look(file_system: FileSystem, device: &Path, directory: &Path, journal: &str) -> Result<(), String> {
    let at = directory.join("mount");
    std::fs::create_dir(&at).unwrap();
    let options = FileSystemOptions::default();
    file_system.make(device, &options).map_err(|error| error.to_string())?;
    let mounted = file_system.mount(device, &at, &options).map_err(|error| error.to_string())?;
    std::fs::create_dir(at.join("d")).unwrap();
    let block: Vec<u8> = (0..16_384_u32).flat_map(|number| (number ^ 0x9e37_79b9).to_le_bytes()).collect();
    let mut file = File::create(at.join("d/file")).unwrap();
    file.write_all(&block).unwrap();
    rustix::fs::syncfs(&file).unwrap();
    drop(file);
    let roles = Roles::new(mounted.path(), device, file_system);
    mounted.unmount().unwrap();
    let mut drive = Vec::new();
    File::open(device).unwrap().read_to_end(&mut drive).unwrap();
    let places: Vec<usize> =
        (0..drive.len()).step_by(4096).filter(|at| drive[*at..].starts_with(&block[..4096])).collect();
    assert!(!places.is_empty());
    for place in places {
        assert_eq!(roles.role(place as u64 + 5000), (Some(Path::new("d/file")), Some("data")), "at {place}");
    }
    let all: Vec<Option<&str>> = (0..drive.len() as u64).step_by(4096).map(|at| roles.role(at).1).collect();
    for role in ["superblock", journal] {
        assert!(all.contains(&Some(role)), "{role} of {file_system}");
    }
    let gap = roles.longest_gap(drive.len() as u64);
    assert!(gap.end - gap.start > 1 << 20, "{gap:?}");
    Ok(())
}

#[test]
fn on_ext4() {
    file_is_found_by_its_bytes(FileSystem::Ext4, "journal");
}

#[test]
fn on_xfs() {
    file_is_found_by_its_bytes(FileSystem::Xfs, "log");
}

#[test]
fn on_btrfs() {
    file_is_found_by_its_bytes(FileSystem::Btrfs, "tree");
}
