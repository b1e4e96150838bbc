//! Removal of keys from dm tables: the kernel shows them to root, and nothing here needs them.

use super::wire::dm;

/// Overwrites the keys in an answer to DM_TABLE_STATUS with zeros, without changing its length.
///
/// dm-crypt prints `cipher key iv_offset device offset` (crypt_status), dm-integrity prints
/// `internal_hash:algorithm:key` and similar (dm_integrity_status). A key in the kernel's keyring is printed
/// as a reference that starts with a colon, and is kept.
pub(super) fn dm_keys(targets: &mut [u8]) {
    for place in dm::places(targets) {
        let Some(text) = targets.get_mut(place.text.clone()) else { continue };
        match place.kind.as_str() {
            "crypt" => blot_crypt(text),
            "integrity" => blot_integrity(text),
            _ => {}
        }
    }
}

fn blot_crypt(text: &mut [u8]) {
    let mut words = text.split_mut(|byte| *byte == b' ');
    if let Some(key) = words.nth(1)
        && !key.starts_with(b":")
        && key != b"-"
    {
        key.fill(b'0');
    }
}

fn blot_integrity(text: &mut [u8]) {
    for word in text.split_mut(|byte| *byte == b' ') {
        let secret = [&b"internal_hash:"[..], b"journal_crypt:", b"journal_mac:"];
        let Some(name) = secret.iter().find(|name| word.starts_with(name)) else { continue };
        let value = &mut word[name.len()..];
        if let Some(colon) = value.iter().position(|byte| *byte == b':') {
            value[colon + 1..].fill(b'0');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redacted(kind: &str, text: &str) -> String {
        let mut targets = dm::encode(&[(0, 8, kind, text)]);
        dm_keys(&mut targets);
        dm::parse(&targets).pop().unwrap().parameters
    }

    #[test]
    fn keys_are_blotted_out_and_the_rest_stays() {
        assert_eq!(
            redacted("crypt", "aes-xts-plain64 c0ffee 0 8:1 32768"),
            "aes-xts-plain64 000000 0 8:1 32768"
        );
        let keyring = "aes-xts-plain64 :64:logon:cryptsetup:x-d0 0 8:1 32768 1 allow_discards";
        assert_eq!(redacted("crypt", keyring), keyring);
        assert_eq!(
            redacted(
                "integrity",
                "8:1 0 32 J 2 internal_hash:hmac(sha256):c0ffee journal_crypt:ctr(aes):00ff"
            ),
            "8:1 0 32 J 2 internal_hash:hmac(sha256):000000 journal_crypt:ctr(aes):0000"
        );
        assert_eq!(redacted("linear", "8:1 2048"), "8:1 2048");
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_taken_without_panic(mut bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200)) {
            dm_keys(&mut bytes);
        }

        #[test]
        fn no_key_survives(key in "[1-9a-f]{8,64}", options in "[a-z ]{0,20}") {
            let text = redacted("crypt", &format!("aes {key} 0 8:1 0 {options}"));
            proptest::prop_assert!(!text.contains(&key));
        }
    }
}
