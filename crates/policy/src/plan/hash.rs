//! Hash of a plan: over its JSON without white space and with sorted keys, so that only the order of keys and
//! white space are ignored. Fields unknown to this version are included.

use serde_json::Value;

use plumb_state::digest::sha256_hex;

/// Key that is excluded.
pub(super) const KEY: &str = "hash";

/// Returns the hash of a document without its own `hash`.
pub(super) fn compute(mut document: Value) -> String {
    if let Some(fields) = document.as_object_mut() {
        fields.remove(KEY);
    }
    // Already sorted, unless another crate in the program makes `serde_json` preserve the order of keys.
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
