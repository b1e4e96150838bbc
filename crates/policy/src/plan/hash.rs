//! The hash of a plan: over its JSON without white space and with sorted keys, so that neither the order of
//! keys nor white space counts, and everything else does, what this version does not know included.

use serde_json::Value;

use plumb_state::digest::sha256_hex;

/// The key that is left out.
pub(super) const KEY: &str = "hash";

/// Returns the hash of a document, its own `hash` left out.
pub(super) fn compute(mut document: Value) -> String {
    if let Some(fields) = document.as_object_mut() {
        fields.remove(KEY);
    }
    // Sorted already, unless a crate in the same program has `serde_json` keep the order of keys.
    document.sort_all_objects();
    format!("sha256:{}", sha256_hex(document.to_string().as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(json: &str) -> String {
        compute(serde_json::from_str(json).unwrap())
    }

    #[test]
    fn only_order_white_space_and_the_hash_itself_do_not_count() {
        let plain = hash(r#"{"a":1,"b":[{"x":"é","y":null}]}"#);
        assert_eq!(hash(r#"{ "b" : [ {"y":null, "x":"\u00e9"} ], "hash":"?", "a" : 1 }"#), plain);
        for other in [
            r#"{"a":2,"b":[{"x":"é","y":null}]}"#,
            r#"{"a":1,"b":[{"x":"é"}]}"#,
            r#"{"a":1,"b":[{"x":"é","y":null,"hash":""}]}"#,
            r#"{"a":1,"b":[{"x":"é","y":null}],"c":0}"#,
            r#"{"a":1,"b":[{"x\"":"é","y":null}]}"#,
        ] {
            assert_ne!(hash(other), plain, "{other}");
        }
    }
}
