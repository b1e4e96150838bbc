//! udev rules that set a disk again whenever the kernel reports that it has appeared or changed.
//!
//! A rule recognises a disk by `wwid`, which the kernel makes from its designators, or by its serial number,
//! never by its name, which may change. If the disk has `cache_type`, the rule writes it: no program is
//! started, and the kernel reads the drive again in the same step. The rule writes only a value that differs
//! from the kernel's view, so that repeated events change nothing, and controllers that refuse an equal value
//! are left alone. For NVMe, and for `protected`, which relies on a claim that may expire, the rule starts
//! plumb.
//!
//! Limitation: a rule sees only the kernel's view. A drive whose cache was switched without the kernel's
//! knowledge is found by the unit and by `plumb policy watch`. A write-protected disk is not touched, since
//! the kernel disables its cache when asked to enable it.

use std::fmt::Write as _;

use super::desired::{CacheType, DesiredState};
use super::persistence::Persistence;
use crate::state::State;

/// Returns the rules for all desired states that do not persist in the drive. `program` is the absolute path
/// of plumb, `directory` that of the desired states.
///
/// `program` and `directory` must not contain characters that udev or a shell would expand.
pub fn rules(desired_states: &[DesiredState], program: &str, directory: &str) -> String {
    let mut text = String::from(
        "# Made by plumb from /etc/plumb/policy.d: `plumb policy persist` overwrites this file.\n\
         ACTION!=\"add|change\", GOTO=\"plumb_policy_end\"\n\
         SUBSYSTEM!=\"block\", GOTO=\"plumb_policy_end\"\n\
         ENV{DEVTYPE}!=\"disk\", GOTO=\"plumb_policy_end\"\n",
    );
    for desired in desired_states.iter().filter(|desired| desired.means == Persistence::AtEveryStart) {
        one(&mut text, desired);
    }
    let enforce = format!("{program} policy enforce --udev $kernel --from {directory}");
    for (key, value) in [
        (r#"ENV{PLUMB_POLICY}=="scsi-off", ATTR{queue/write_cache}=="write back""#, "write through"),
        (
            r#"ENV{PLUMB_POLICY}=="scsi-on", ATTR{queue/write_cache}=="write through", ATTR{ro}=="0""#,
            "write back",
        ),
    ] {
        push(&mut text, &format!(r#"{key}, ATTR{{device/scsi_disk/*/cache_type}}="{value}""#));
    }
    for (key, value) in [
        (r#"ENV{PLUMB_POLICY}=="virtio-off", ATTR{cache_type}=="write back""#, "write through"),
        (r#"ENV{PLUMB_POLICY}=="virtio-on", ATTR{cache_type}=="write through""#, "write back"),
    ] {
        push(&mut text, &format!(r#"{key}, ATTR{{cache_type}}="{value}""#));
    }
    push(&mut text, &format!(r#"ENV{{PLUMB_POLICY}}=="enforce", RUN+="{enforce}""#));
    push(&mut text, r#"LABEL="plumb_policy_end""#);
    text
}

fn push(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

fn one(text: &mut String, desired: &DesiredState) {
    let about = [desired.model.as_deref(), desired.serial.as_deref(), Some(desired.identity.as_str())];
    let about: Vec<String> = about.into_iter().flatten().map(plain).collect();
    // Writing to a String cannot fail.
    writeln!(text, "# {}: {}", about.join(" "), desired.state).ok();
    for matcher in matchers(desired) {
        writeln!(text, "{matcher}, ENV{{PLUMB_POLICY}}=\"{}\"", action(desired)).ok();
    }
    if desired.identity.starts_with("serial.") && desired.transport == "usb" {
        // The serial number that udev reports is the bridge's, which may differ from the disk's: plumb
        // identifies the disk itself.
        push(text, r#"SUBSYSTEMS=="usb", ENV{PLUMB_POLICY}=="", ENV{PLUMB_POLICY}="enforce""#);
    }
}

/// Returns the udev matches that identify the disk; any one of them is sufficient.
fn matchers(desired: &DesiredState) -> Vec<String> {
    let Some(serial) = desired.identity.strip_prefix("serial.") else {
        return vec![format!(r#"ATTRS{{wwid}}=="{}""#, pattern(&desired.identity))];
    };
    let exact = pattern(serial);
    if desired.transport == "virtio" {
        return vec![format!(r#"ATTR{{serial}}=="{exact}""#)];
    }
    if desired.transport.starts_with("nvme") {
        return vec![format!(r#"ATTRS{{serial}}=="{exact}""#)];
    }
    // scsi_id takes ID_SERIAL_SHORT from the identification page, where it may be truncated, and
    // ID_SCSI_SERIAL from the serial number page. White space is replaced by one underscore.
    let words: Vec<String> = serial.split_whitespace().map(pattern).collect();
    if words.is_empty() {
        // An empty value would match every disk without a serial number.
        return Vec::new();
    }
    let loose = words.join("?");
    ["ID_SERIAL_SHORT", "ID_SCSI_SERIAL"].map(|key| format!(r#"ENV{{{key}}}=="{loose}""#)).to_vec()
}

fn action(desired: &DesiredState) -> &'static str {
    match (desired.state, desired.cache_type) {
        (State::Off, CacheType::Scsi) => "scsi-off",
        (State::On, CacheType::Scsi) => "scsi-on",
        (State::Off, CacheType::Virtio) => "virtio-off",
        (State::On, CacheType::Virtio) => "virtio-on",
        (State::Protected, _) | (_, CacheType::Nowhere) => "enforce",
    }
}

/// Returns a value as a pattern of udev (udev(7)). `?` replaces a character that is special in a pattern or
/// would end the text. `*` replaces a character outside ASCII, which is several bytes to udev, and a control
/// character.
fn pattern(value: &str) -> String {
    value
        .chars()
        .map(|letter| match letter {
            '*' | '?' | '[' | ']' | '|' | '\\' | '"' => '?',
            letter if letter.is_ascii() && !letter.is_ascii_control() => letter,
            _ => '*',
        })
        .collect()
}

/// Replaces control characters by spaces, for use in a comment.
fn plain(value: &str) -> String {
    value.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mock::udev::{check_rules, pairs};

    fn desired(identity: &str, transport: &str, state: State, cache_type: CacheType) -> DesiredState {
        DesiredState {
            identity: identity.into(),
            state,
            means: Persistence::AtEveryStart,
            transport: transport.into(),
            cache_type,
            model: Some("M".into()),
            serial: None,
        }
    }

    #[test]
    fn each_kind_of_disk_is_known_by_what_stays_and_set_by_what_is_enough() {
        let mut kept = desired("naa.5", "sas", State::Off, CacheType::Scsi);
        kept.means = Persistence::InTheDrive;
        let text = rules(
            &[
                desired("naa.1", "ata", State::Off, CacheType::Scsi),
                desired("t10.ATA     QEMU HARDDISK   \"a|b\"", "ata", State::On, CacheType::Scsi),
                desired("serial.vd1", "virtio", State::Off, CacheType::Virtio),
                desired("eui.2", "nvme", State::Off, CacheType::Nowhere),
                desired("naa.3", "sas", State::Protected, CacheType::Scsi),
                desired("serial.usb9", "usb", State::On, CacheType::Scsi),
                desired("serial.WD  12", "scsi", State::Off, CacheType::Scsi),
                kept,
            ],
            "/usr/bin/plumb",
            "/etc/plumb/policy.d",
        );
        check_rules(&text).unwrap();
        for line in [
            r#"ATTRS{wwid}=="naa.1", ENV{PLUMB_POLICY}="scsi-off""#,
            r#"ATTRS{wwid}=="t10.ATA     QEMU HARDDISK   ?a?b?", ENV{PLUMB_POLICY}="scsi-on""#,
            r#"ATTR{serial}=="vd1", ENV{PLUMB_POLICY}="virtio-off""#,
            r#"ATTRS{wwid}=="eui.2", ENV{PLUMB_POLICY}="enforce""#,
            r#"ATTRS{wwid}=="naa.3", ENV{PLUMB_POLICY}="enforce""#,
            r#"ENV{ID_SERIAL_SHORT}=="usb9", ENV{PLUMB_POLICY}="scsi-on""#,
            r#"SUBSYSTEMS=="usb", ENV{PLUMB_POLICY}=="", ENV{PLUMB_POLICY}="enforce""#,
            r#"ENV{ID_SCSI_SERIAL}=="WD?12", ENV{PLUMB_POLICY}="scsi-off""#,
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\nis not in\n{text}");
        }
        assert!(!text.contains("naa.5"), "the drive keeps it: {text}");
        assert!(!text.contains("KERNEL"), "names count for nothing: {text}");
        assert!(
            text.contains(
                r#"RUN+="/usr/bin/plumb policy enforce --udev $kernel --from /etc/plumb/policy.d""#
            )
        );
    }

    #[test]
    fn a_name_can_neither_end_a_rule_nor_begin_one() {
        let hostile = "naa.1\", RUN+=\"/bin/x\n* | [a]";
        let mut desired = desired(hostile, "ata", State::Off, CacheType::Scsi);
        desired.model = Some("M\nRUN+=\"/bin/x\"".into());
        let text = rules(&[desired], "/usr/bin/plumb", "/d");
        check_rules(&text).unwrap();
        assert_eq!(text.lines().filter(|line| line.contains("/bin/x")).count(), 2, "{text}");
        let rule = text.lines().find(|line| line.starts_with("ATTRS")).unwrap();
        assert_eq!(pairs(rule).unwrap().len(), 2, "{rule}");
    }

    #[test]
    fn rules_that_udev_would_drop_are_found() {
        for (text, what) in [
            ("KERNEL==\"a\"", "does nothing"),
            ("GOTO=\"x\"", "label"),
            ("KERNEL==\"a\" ATTR{b}=\"c\"", "comma"),
            ("KERNAL==\"a\", ATTR{b}=\"c\"", "not known"),
            ("KERNEL==\"a\", ATTR{b}=\"c", "never ends"),
            ("KERNEL==\"a\", ATTR{b}=c", "quotes"),
            ("nonsense", "no operator"),
        ] {
            let error = check_rules(text).unwrap_err().to_string();
            assert!(error.contains(what), "{text}: {error}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_identity_gives_rules_that_udev_takes(identity in ".{1,40}", serial in ".{0,20}") {
            let mut desired = desired(&identity, "ata", State::Off, CacheType::Scsi);
            desired.serial = Some(serial);
            proptest::prop_assert_eq!(check_rules(&rules(&[desired], "/usr/bin/plumb", "/d")), Ok(()));
        }
    }
}
