//! Cases of the rule table.

use super::*;
use crate::signature::Signature;

const T: &str = "target";

fn ext4() -> Contents {
    Contents::Read(vec![Signature::new("ext4", 1080)])
}

fn mounted() -> Use {
    Use::Mounted { device: "sda1".into(), point: "/mnt".into(), kind: "ext4".into() }
}

fn held() -> Use {
    Use::Held { device: "sda".into(), by: "dm-0 (vg-root)".into() }
}

fn swap(device: &str) -> Use {
    Use::Swap { device: device.into() }
}

fn locked() -> Use {
    Use::Locked { file: "/srv/m".into(), process: Some("7".into()) }
}

fn behind() -> Use {
    Use::Loop { device: "the file".into(), by: "loop3".into() }
}

fn block(contents: Contents, uses: Vec<Use>) -> FoundObject {
    FoundObject::Block(BlockFacts {
        kernel_name: "sda".into(),
        size: Bytes::gib(1),
        identities: vec!["SERIAL 1".into(), "naa.5000".into()],
        read_only: false,
        contents,
        uses,
        unseen: None,
    })
}

fn file(made_by_plumb: bool, contents: Contents, uses: Vec<Use>) -> FoundObject {
    FoundObject::File(FileFacts {
        identities: vec!["/srv/x.dat".into()],
        size: Bytes::mib(1),
        made_by_plumb,
        changed_since_made: false,
        contents,
        uses,
        unseen: None,
    })
}

fn nothing() -> Permission {
    Permission::default()
}

fn overwrite() -> Permission {
    Permission { overwrite: true, ..Permission::default() }
}

fn destroy(word: &str) -> Permission {
    Permission { destroy: vec![word.into()], ..Permission::default() }
}

/// Expected result of a rule: the access, or the kind of the error and a word of its message.
type ExpectedAnswer = std::result::Result<AllowedAccess, (Kind, &'static str)>;

const WRITE: ExpectedAnswer = Ok(AllowedAccess::Write { exclusive: false });
const CLAIM: ExpectedAnswer = Ok(AllowedAccess::Write { exclusive: true });

fn refused(word: &'static str) -> ExpectedAnswer {
    Err((Kind::Refused, word))
}

fn check(cases: Vec<(FoundObject, Intent, Permission, ExpectedAnswer)>) {
    for (found, intent, permission, expected) in cases {
        let answer = judge(T, &found, intent, &permission);
        match (&answer, &expected) {
            (Ok(allowed), Ok(expected)) => {
                assert_eq!(allowed, expected, "{found:?} {intent:?} {permission:?}")
            }
            (Err(error), Err((kind, word))) => {
                assert_eq!(error.kind(), *kind, "{error}");
                assert!(error.to_string().contains(word), "`{word}` is not in: {error}");
                assert!(!error.remedy().is_empty(), "no remedy: {error}");
            }
            _ => panic!("{found:?} {intent:?} {permission:?}: expected {expected:?}, got {answer:?}"),
        }
    }
}

#[test]
fn block_devices() {
    use Contents as C;
    let w = Intent::WRITE;
    check(vec![
        (block(C::BLANK, vec![]), w, nothing(), refused("--overwrite")),
        (block(C::BLANK, vec![]), w, overwrite(), CLAIM),
        (block(C::BLANK, vec![]), w, destroy("SERIAL 1"), CLAIM),
        (block(C::BLANK, vec![]), w, destroy("SERIAL 2"), refused("--overwrite")),
        (block(ext4(), vec![]), w, nothing(), refused("--destroy 'SERIAL 1'")),
        (block(ext4(), vec![]), w, overwrite(), refused("it holds ext4")),
        (block(ext4(), vec![]), w, destroy("naa.5000"), CLAIM),
        (block(C::BLANK, vec![mounted()]), w, overwrite(), refused("sda1 is mounted at /mnt (ext4)")),
        (block(C::BLANK, vec![mounted()]), w, destroy("SERIAL 1"), WRITE),
        (block(C::BLANK, vec![held()]), w, overwrite(), refused("part of dm-0 (vg-root)")),
        (block(C::BLANK, vec![held()]), w, destroy("SERIAL 1"), WRITE),
        (block(C::BLANK, vec![swap("sda")]), w, overwrite(), refused("swapoff /dev/sda")),
        (block(C::BLANK, vec![swap("sda")]), w, destroy("SERIAL 1"), refused("swapoff /dev/sda")),
        (block(C::BLANK, vec![swap("/srv/a b")]), w, destroy("SERIAL 1"), refused("swapoff '/srv/a b'")),
        (block(C::BLANK, vec![locked()]), w, overwrite(), refused("locked by process 7")),
        (block(C::BLANK, vec![mounted(), locked()]), w, destroy("SERIAL 1"), refused("locked by process 7")),
        (block(C::NamedByBlkid("x".into()), vec![]), w, overwrite(), refused("x (as blkid says)")),
        (block(C::NamedByBlkid("x".into()), vec![]), w, destroy("SERIAL 1"), CLAIM),
        (block(C::Unreadable("EIO".into()), vec![]), w, overwrite(), refused("cannot be read")),
        (block(C::Unreadable("EIO".into()), vec![]), w, destroy("SERIAL 1"), CLAIM),
        (block(C::BLANK, vec![]), w.sized(Bytes::gib(2)), overwrite(), Err((Kind::Usage, "size"))),
    ]);
}

#[test]
fn what_cannot_be_seen_or_written_is_never_written() {
    let all = Permission {
        overwrite: true,
        destroy: vec!["SERIAL 1".into(), "/srv/x.dat".into()],
        ..Permission::default()
    };
    let FoundObject::Block(facts) = block(Contents::BLANK, vec![]) else { panic!("a block device") };
    let unseen = FoundObject::Block(BlockFacts { unseen: Some("/sys (not there)".into()), ..facts.clone() });
    let read_only = FoundObject::Block(BlockFacts { read_only: true, ..facts });
    let FoundObject::File(facts) = file(true, Contents::BLANK, vec![]) else { panic!("a file") };
    let unseen_file = FoundObject::File(FileFacts { unseen: Some("/proc (denied)".into()), ..facts });
    check(vec![
        (unseen.clone(), Intent::WRITE, all.clone(), refused("cannot be seen: /sys")),
        (unseen, Intent::READ, nothing(), Ok(AllowedAccess::Read)),
        (read_only.clone(), Intent::WRITE, all.clone(), refused("blockdev --setrw /dev/sda")),
        (read_only, Intent::READ, nothing(), Ok(AllowedAccess::Read)),
        (unseen_file.clone(), Intent::WRITE, overwrite(), refused("cannot be seen: /proc")),
        (unseen_file, Intent::WRITE, all, WRITE),
    ]);
}

#[test]
fn files() {
    use Contents as C;
    let (r, w) = (Intent::READ, Intent::WRITE);
    let longer = Bytes::mib(2);
    check(vec![
        (file(true, C::BLANK, vec![]), w, nothing(), WRITE),
        (file(true, ext4(), vec![]), w, nothing(), refused("somebody has used it since")),
        (file(true, ext4(), vec![]), w, overwrite(), refused("--destroy /srv/x.dat")),
        (file(false, ext4(), vec![]), w, overwrite(), refused("it holds ext4")),
        (file(false, ext4(), vec![]), w, destroy("/srv/x.dat"), WRITE),
        (file(false, C::BLANK, vec![]), w, nothing(), refused("--overwrite")),
        (file(false, C::BLANK, vec![]), w, overwrite(), WRITE),
        (file(false, C::BLANK, vec![]), w, destroy("/srv/x.dat"), WRITE),
        (file(false, C::BLANK, vec![]), w, destroy("x.dat"), refused("--overwrite")),
        (file(true, C::BLANK, vec![behind()]), w, overwrite(), refused("--destroy /srv/x.dat")),
        (file(true, C::BLANK, vec![behind()]), w, overwrite(), refused("losetup -d /dev/loop3")),
        (file(true, C::BLANK, vec![behind()]), w, destroy("/srv/x.dat"), WRITE),
        (file(true, C::BLANK, vec![swap("the file")]), w, destroy("/srv/x.dat"), refused("swapoff")),
        (file(false, C::BLANK, vec![]), r, nothing(), Ok(AllowedAccess::Read)),
        (file(false, C::BLANK, vec![]), r.sized(Bytes::mib(1)), nothing(), Ok(AllowedAccess::Read)),
        // Extending a file is a write, even for an intent to read.
        (file(false, C::BLANK, vec![]), r.sized(longer), nothing(), refused("--overwrite")),
        (file(false, C::BLANK, vec![]), r.sized(longer), overwrite(), Ok(AllowedAccess::Resize(longer))),
        (file(true, C::BLANK, vec![]), w.sized(longer), nothing(), Ok(AllowedAccess::Resize(longer))),
        (file(true, C::BLANK, vec![]), w.sized(Bytes(512)), nothing(), WRITE),
    ]);
}

#[test]
fn reading_is_always_allowed() {
    for uses in [vec![mounted()], vec![held()], vec![swap("sda")], vec![behind()]] {
        for found in [block(ext4(), uses.clone()), file(false, ext4(), uses)] {
            assert_eq!(judge(T, &found, Intent::READ, &nothing()), Ok(AllowedAccess::Read));
        }
    }
}

#[test]
fn what_is_not_there_or_no_target() {
    let (r, w) = (Intent::READ, Intent::WRITE);
    let missing = |missing| FoundObject::Missing(missing);
    check(vec![
        (missing(Missing::CanBeMade), w.sized(Bytes(4096)), nothing(), Ok(AllowedAccess::Make(Bytes(4096)))),
        (missing(Missing::CanBeMade), r.sized(Bytes(4096)), nothing(), Ok(AllowedAccess::Make(Bytes(4096)))),
        (missing(Missing::CanBeMade), w, overwrite(), Err((Kind::Usage, "--size"))),
        (missing(Missing::CanBeMade), w.sized(Bytes(0)), nothing(), Err((Kind::Usage, "size"))),
        (missing(Missing::CanBeMade), r, nothing(), Err((Kind::NotFound, "no such file"))),
        (missing(Missing::NoDirectory), w.sized(Bytes(1)), nothing(), Err((Kind::NotFound, "directory"))),
        (missing(Missing::DanglingLink), w.sized(Bytes(1)), nothing(), Err((Kind::NotFound, "link"))),
        (missing(Missing::InDev), w.sized(Bytes(1)), overwrite(), Err((Kind::NotFound, "device"))),
        (FoundObject::Directory, w.sized(Bytes(1)), overwrite(), Err((Kind::Usage, "directory"))),
        (FoundObject::Other("FIFO"), r, overwrite(), Err((Kind::Usage, "FIFO"))),
        (FoundObject::Kernel("sysfs"), r, overwrite(), refused("sysfs")),
        (FoundObject::Kernel("proc"), w, destroy("/proc/x"), refused("stores nothing")),
    ]);
}

#[test]
fn each_typed_word_must_name_a_target() {
    let (one, two) = (["A1".to_owned(), "naa.1".to_owned()], ["B 2".to_owned()]);
    let targets: [(&str, &[String]); 3] = [("/dev/sda", &one), ("/dev/sdb", &two), ("new", &[])];
    assert_eq!(each_word_names_a_target(&destroy("naa.1"), &targets), Ok(()));
    assert_eq!(each_word_names_a_target(&nothing(), &targets), Ok(()));
    for typed in ["C3", "", "a1", "/dev/sda"] {
        let error = each_word_names_a_target(&destroy(typed), &targets).unwrap_err();
        assert_eq!(error.kind(), Kind::Refused);
        assert!(error.to_string().contains("'B 2' for /dev/sdb"), "{error}");
    }
}
