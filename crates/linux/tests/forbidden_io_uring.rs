//! Tests that without permission for io_uring the device still works, one request at a time, and reports
//! that. Guards against a depth that is silently cut to 1. Likewise, the mapped engine reports that its
//! copies are forbidden.

#![expect(unsafe_code, reason = "seccomp filters are installed through prctl")]

use std::sync::Arc;

use crate::support::{FileRig, test_file};
use plumb_block::conformance::{Rig as _, run};
use plumb_block::{Caching, Device as _, EngineChoice, ErrorKind, RealClock};
use plumb_linux::{Engine, FileDevice, FileOptions};

/// Makes the system call of that number fail with EPERM for the calling thread and its future children.
fn forbid(call: libc::c_long) -> std::io::Result<()> {
    let load = |offset: u32| libc::sock_filter {
        code: (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16,
        jt: 0,
        jf: 0,
        k: offset,
    };
    let answer =
        |value: u32| libc::sock_filter { code: (libc::BPF_RET | libc::BPF_K) as u16, jt: 0, jf: 0, k: value };
    let mut program = [
        load(0),
        libc::sock_filter {
            code: (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16,
            jt: 0,
            jf: 1,
            k: call as u32,
        },
        answer(libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        answer(libc::SECCOMP_RET_ALLOW),
    ];
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: takes no pointers.
    if unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) } < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: the program outlives the call, which copies it.
    let answer = unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter) };
    if answer < 0 { Err(std::io::Error::last_os_error()) } else { Ok(()) }
}

#[test]
fn a_forbidden_io_uring_is_said_and_done_without() {
    // Filters belong to a thread, so the other tests keep io_uring.
    let checked = std::thread::spawn(|| {
        let directory = tempfile::tempdir().unwrap();
        let file = test_file(directory.path());
        if let Err(error) = forbid(libc::SYS_io_uring_setup) {
            return plumb_testkit::skip(&format!("no seccomp filter can be installed: {error}"));
        }
        let clock = Arc::new(RealClock::start());
        let device = FileDevice::open(&file.path(), FileOptions::write_direct(), clock.clone()).unwrap();
        let engine = device.engine();
        assert!(matches!(engine, Engine::Positioned { .. }), "{engine}");
        assert_eq!((engine.name(), engine.depth_max()), ("pread/pwrite", Some(1)));
        assert!(engine.to_string().contains("forbidden"), "{engine}");
        assert!(device.info().blocks() > 0);
        let forced = FileOptions::write_direct().engine(EngineChoice::IoUring);
        let Err(refused) = FileDevice::open(&file.path(), forced, clock) else {
            panic!("it was not refused")
        };
        assert!(refused.to_string().contains("forbidden"), "{refused}");
        let mut rig = FileRig::new(&file.path(), FileOptions::write_direct());
        assert!(rig.renew().is_ok());
        run(&mut rig, 9).assert_conforms();
    });
    checked.join().unwrap();
}

#[test]
fn a_mapping_whose_copies_are_forbidden_is_refused() {
    let checked = std::thread::spawn(|| {
        let directory = tempfile::tempdir().unwrap();
        let file = test_file(directory.path());
        if let Err(error) = forbid(libc::SYS_process_vm_readv) {
            return plumb_testkit::skip(&format!("no seccomp filter can be installed: {error}"));
        }
        let options = FileOptions::write_buffered().caching(Caching::Mapped);
        let Err(refused) = FileDevice::open(&file.path(), options, Arc::new(RealClock::start())) else {
            panic!("it was not refused")
        };
        assert_eq!(refused.kind, ErrorKind::Unsupported);
        assert!(refused.to_string().contains("process_vm_readv"), "{refused}");
    });
    checked.join().unwrap();
}
