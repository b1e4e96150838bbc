//! The hash of a plan: over canonical JSON, so that neither the order of keys nor white space counts, and everything else
//! does, what this version does not know included.

use serde::Serialize;
use serde_json::Error;

use super::canonical;
use crate::digest::sha256_hex;

/// The key that is left out.
pub(super) const KEY: &str = "hash";

/// The hash of a document, its own `hash` left out.
///
/// # Errors
/// As [`canonical::text`].
pub(super) fn of(document: &impl Serialize) -> Result<String, Error> {
    Ok(format!("sha256:{}", sha256_hex(&canonical::text(document, Some(KEY))?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(json: &str) -> String {
        of(&serde_json::from_str::<serde_json::Value>(json).unwrap()).unwrap()
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
