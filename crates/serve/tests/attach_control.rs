//! Tests of the control file of an attachment: a write there is passed on before it returns, and does not
//! reach the device.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::sync::{Arc, Mutex};

use crate::attach_support::disk::{Disk, SharedDisk};
use crate::attach_support::{Place, run};
use plumb_block::{Bytes, Errno};
use plumb_serve::attach::{AttachOptions, Attachment, ControlFile};

#[test]
fn each_write_has_its_place_among_the_flushes() {
    let Some(place) = Place::new() else { return };
    let disk = Disk::new(Bytes::mib(1));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (device, into) = (Arc::clone(&disk), Arc::clone(&seen));
    let control = ControlFile(Arc::new(move |bytes: &[u8]| {
        if bytes == b"no\n" {
            return Err(Errno::EINVAL);
        }
        into.lock().unwrap().push((String::from_utf8(bytes.to_vec()).unwrap(), device.counts().flushes));
        Ok(())
    }));
    let options = AttachOptions { control: Some(control), ..place.options() };
    let mut attachment =
        Attachment::new(Arc::new(SharedDisk(Arc::clone(&disk))), "control", &options).unwrap();
    let path = attachment.control_file().unwrap();

    let block = OpenOptions::new().write(true).custom_flags(0x4000).open(attachment.path()).unwrap();
    let before = disk.counts();
    let mut file = OpenOptions::new().write(true).open(&path).unwrap();
    let mut expected = Vec::new();
    for number in 0..20 {
        block.sync_all().unwrap();
        file.write_all(format!("{number}\n").as_bytes()).unwrap();
        assert_eq!(seen.lock().unwrap().len(), number + 1, "the write returned before it was handed on");
        expected.push((format!("{number}\n"), before.flushes + number as u64 + 1));
    }
    assert_eq!(*seen.lock().unwrap(), expected);
    assert_eq!(file.write_all(b"no\n").unwrap_err().raw_os_error(), Some(Errno::EINVAL.0));

    // Writes like those of shells: with truncation, and appending.
    let shell = |line: &str| run("/bin/sh", &["-c", line, "sh", &path.display().to_string()]);
    shell("echo 7 > \"$1\"; printf '8\\n9\\n' >> \"$1\"").unwrap();
    let texts: Vec<String> = seen.lock().unwrap().iter().skip(20).map(|(text, _)| text.clone()).collect();
    assert_eq!(texts, ["7\n", "8\n9\n"]);
    file.sync_all().unwrap();
    let flushes = disk.counts().flushes;
    block.sync_all().unwrap();
    assert!(
        disk.counts().flushes > flushes,
        "a sync of the control file has switched those of the device off"
    );
    assert_eq!(disk.counts().writes, before.writes);
    let names = fs::read_dir(path.parent().unwrap()).unwrap();
    let mut names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["control", "disk"]);
    drop((file, block));
    attachment.detach().unwrap();
    assert!(attachment.control_file().is_none() && !place.has_mounts());
}

#[test]
fn there_is_none_unless_it_was_asked_for() {
    let Some(place) = Place::new() else { return };
    let mut attachment = place.attach(&Disk::new(Bytes::mib(1)), "without");
    assert!(attachment.control_file().is_none());
    let path = place.directory().join("without/mount/control");
    assert_eq!(File::open(path).unwrap_err().kind(), std::io::ErrorKind::NotFound);
    attachment.detach().unwrap();
}
