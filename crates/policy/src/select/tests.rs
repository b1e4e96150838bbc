//! Tests of expressions with one disk.

use super::{Selection, Truth};
use crate::view::tests::sample;
use crate::view::{DeviceView, Holder};

fn judge(expression: &str, view: &DeviceView) -> Truth {
    Selection::parse(expression).unwrap_or_else(|error| panic!("{error}")).judge(view)
}

#[test]
fn disks_are_chosen_by_what_they_are() {
    let mut view = sample("sda");
    view.holders = vec![
        Holder { name: "sda1".into(), kind: "partition".into(), write_cache: None },
        Holder { name: "/".into(), kind: "ext4".into(), write_cache: None },
        Holder { name: "sda2".into(), kind: "swap".into(), write_cache: None },
    ];
    // `and` binds tighter than `or`, and `not` tightest.
    let yes = [
        "model = st4000nm0035",
        "model == ST4000NM0035",
        "model ~ ST*",
        "MODEL ~ 'st????nm*'",
        "vendor = ata",
        "size = 4TB",
        "size > 4TB and size < 3.7TiB",
        "size <= 4000787030016",
        "size>=4TB",
        "rotational=yes and not role=unused",
        "rotational = true",
        "rotational != 0",
        "role = root",
        "role = swap",
        "role ~ r*",
        "not (role = data or state = off)",
        "name = sda and (transport = ata or transport = sas) and port ~ port-*",
        "host ~ port-*",
        "path = port-sda",
        "identity = naa.sda",
        "state == on",
        "state = \"Better performance\"",
        "state != 'power protected'",
        "not not serial = S-sda",
        "((name = sda))",
        "NOT name = sdb AND name = sda",
        "name = sda or name = sdb and name = sdc",
        "not name = sda or name = sda",
    ];
    let no = [
        "model != st4000nm0035",
        "model ~ \"WDC *\"",
        "size != 4tb",
        "size >= 4.1tb or rotational = no",
        "role != root",
        "state = quick-removal",
        "(name = sda or name = sdb) and name = sdc",
    ];
    for expression in yes {
        assert_eq!(judge(expression, &view), Truth::Yes, "{expression}");
    }
    for expression in no {
        assert_eq!(judge(expression, &view), Truth::No, "{expression}");
    }
}

#[test]
fn what_a_disk_does_not_say_never_chooses_it() {
    let mut view = sample("sda");
    view.rotational = None;
    view.size = None;
    for expression in ["rotational = no", "not rotational = yes", "size < 1TB", "not size < 1TB"] {
        assert_eq!(judge(expression, &view), Truth::Unknown, "{expression}");
        assert!(!Selection::parse(expression).unwrap().chooses(&view));
    }
    assert_eq!(judge("rotational = no or name = sda", &view), Truth::Yes);
    assert_eq!(judge("rotational = no and name = sdb", &view), Truth::No);
}

/// Cases: the typed expression, the column of the caret, and the message.
const CASES: &str = r#"modle = x ;; 0 ;; Did you mean `model`?
model = x and rotatonal = yes ;; 14 ;; Did you mean `rotational`?
colour = red ;; 0 ;; There are name, identity
model x ;; 6 ;; expected = != or ~ here
model is x ;; 6 ;; Did you mean `=`?
model like ST* ;; 6 ;; Did you mean `~`
role not root ;; 5 ;; Did you mean `!=`?
size 4TB ;; 5 ;; expected = != < <= > or >= here
size > 4T ;; 7 ;; 4TB
size > 4XB ;; 7 ;; not a size
size > -1TB ;; 7 ;; not a size
size > big ;; 7 ;; 4TB and 512GB
size ~ 4TB ;; 5 ;; no pattern
size = ;; 6 ;; such as 4TB
model < x ;; 6 ;; only sizes
model =~ x ;; 7 ;; use `~`
model <> x ;; 7 ;; use `!=`
model ! x ;; 6 ;; `!=` compares
role = rot ;; 7 ;; Did you mean `root`?
transport = sata ;; 12 ;; Did you mean `ata`?
transport = nvem ;; 12 ;; Did you mean `nvme`?
state = onn ;; 8 ;; Did you mean `on`?
rotational = maybe ;; 13 ;; Expected yes, no
(model = x ;; 10 ;; expected `)`
model = x) ;; 9 ;; never opened
() ;; 1 ;; property of a disk
model = Samsung SSD ;; 16 ;; quotes
model = x && name = y ;; 10 ;; Did you mean `and`?
model = x || name = y ;; 10 ;; Did you mean `or`?
model = x adn name = y ;; 10 ;; Did you mean `and`?
model = "x ;; 8 ;; never closed
 ;; 0 ;; property of a disk
not ;; 3 ;; property of a disk
and model = x ;; 0 ;; not a property
model = x or ;; 12 ;; property of a disk
model = ;; 7 ;; a value
= x ;; 0 ;; property of a disk
grün = ü and ;; 0 ;; not a property
model = ü and grün = x ;; 14 ;; not a property"#;

#[test]
fn errors_point_at_the_place_and_name_what_was_meant() {
    for case in CASES.lines() {
        let [typed, column, words] = case.split(";;").map(str::trim).collect::<Vec<_>>()[..] else {
            panic!("{case}")
        };
        let column: usize = column.parse().unwrap();
        let error = Selection::parse(typed).expect_err(typed);
        assert_eq!(error.column, column, "{error}");
        assert!(error.message.contains(words), "{error}");
        let caret = error.to_string().lines().last().unwrap().find('^').unwrap();
        assert_eq!(caret, column + 2, "{error}");
    }
    let deep = format!("{}name = a{}", "(".repeat(5000), ")".repeat(5000));
    assert!(Selection::parse(&deep).unwrap_err().message.contains("parentheses"));
}

proptest::proptest! {
    #[test]
    fn anything_typed_is_understood_or_refused(typed in "[a-z()=~<>!\"' \t4TB]{0,40}") {
        if let Err(error) = Selection::parse(&typed) {
            proptest::prop_assert!(error.column <= typed.chars().count());
        }
    }
}
