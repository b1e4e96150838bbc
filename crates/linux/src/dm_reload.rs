//! Reloading the unchanged table of a device-mapper device, which then adopts the current limits and features
//! of the devices below. Sources: linux/dm-ioctl.h, drivers/md/dm-ioctl.c.
//!
//! Three calls: DM_TABLE_STATUS reads the table (with its keys, which never leave this file). DM_TABLE_LOAD
//! puts the copy into the inactive slot. DM_DEV_SUSPEND without its suspend flag resumes; the kernel itself
//! then suspends, swaps and resumes (do_resume). A process killed here therefore never leaves the device
//! suspended: before the last call only the inactive table has changed, which the next load replaces.

use std::fs::File;
use std::io;

use crate::dm_ioctl::{
    CONTROL, DATA_SIZE, DM_DEV_SUSPEND, DM_TABLE_CLEAR, DM_TABLE_LOAD, FLAGS, NOFLUSH, READONLY, SECURE_DATA,
    STATUS_TABLE, TARGET_COUNT, call, put, request, table_status, targets, word,
};
use crate::tree::DeviceNumber;

const SPEC_BYTES: usize = 40;

/// Reloads the table of the dm device `number` and makes it the active one.
///
/// # Errors
/// The error of the call that failed. The device then keeps running with its old table. If the swap itself
/// failed, which leaves the device suspended, it was resumed.
pub fn reload_table(number: DeviceNumber) -> io::Result<()> {
    let control = File::options().read(true).write(true).open(CONTROL)?;
    let answer = table_status(&control, number, STATUS_TABLE | NOFLUSH | SECURE_DATA)?;
    let read_only = word(&answer, FLAGS) & READONLY;
    let mut load = request(number, read_only | SECURE_DATA, &[]);
    load.extend(relinked(&answer));
    let length = word_len(&load)?;
    put(&mut load, DATA_SIZE, length);
    put(&mut load, TARGET_COUNT, word(&answer, TARGET_COUNT));
    call(&control, DM_TABLE_LOAD, &mut load)?;
    let resumed = resume(&control, number);
    if resumed.is_err() {
        // If the second attempt fails too, the first error explains why.
        let again = resume(&control, number);
        let cleared = call(&control, DM_TABLE_CLEAR, &mut request(number, 0, &[0; 16]));
        again.and(cleared).and(resumed)
    } else {
        resumed
    }
}

fn resume(control: &File, number: DeviceNumber) -> io::Result<()> {
    call(control, DM_DEV_SUSPEND, &mut request(number, 0, &[0; 16]))
}

/// Converts the targets of an answer to the format of a load, where `next` is an offset from the target
/// itself; in an answer it is an offset from the first target.
fn relinked(answer: &[u8]) -> Vec<u8> {
    let targets = targets(answer).unwrap_or_default();
    let mut load = Vec::new();
    let mut at = 0;
    for _ in 0..word(answer, TARGET_COUNT) {
        let Some(spec) = targets.get(at..at + SPEC_BYTES) else { break };
        let text = targets[at + SPEC_BYTES..].split(|byte| *byte == 0).next().unwrap_or_default();
        let length = (SPEC_BYTES + text.len() + 1).next_multiple_of(8);
        let from = load.len();
        load.extend(spec);
        load.extend(text);
        load.resize(from + length, 0);
        put(&mut load, from + 20, length as u32);
        let next = word(targets, at + 20) as usize;
        if next < at + SPEC_BYTES {
            break;
        }
        at = next;
    }
    load
}

fn word_len(buffer: &[u8]) -> io::Result<u32> {
    u32::try_from(buffer.len()).map_err(|_| io::Error::from_raw_os_error(libc::ENOBUFS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::wire::dm;

    #[test]
    fn a_table_is_linked_for_loading() {
        let number = DeviceNumber { major: 253, minor: 1 };
        let targets = dm::encode(&[(0, 2048, "linear", "8:16 2048"), (2048, 8, "crypt", "a :32:x 0 8:0 0")]);
        let mut answer = request(number, 0, &targets);
        put(&mut answer, TARGET_COUNT, 2);
        let load = relinked(&answer);
        let first = word(&load, 20) as usize;
        assert_eq!(first % 8, 0);
        assert_eq!(&load[first + 24..first + 29], b"crypt");
        assert_eq!(word(&load, first + 20) as usize, load.len() - first, "counted from the target itself");
        assert_eq!(&load[40..50], b"8:16 2048\0");
    }

    proptest::proptest! {
        #[test]
        fn damaged_answers_are_taken_without_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..400), count in 0..5_u32) {
            let mut answer = request(DeviceNumber { major: 1, minor: 1 }, 0, &bytes);
            put(&mut answer, TARGET_COUNT, count);
            relinked(&answer);
        }
    }
}
