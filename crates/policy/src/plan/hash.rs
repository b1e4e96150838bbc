//! The hash of a plan: over canonical JSON, so that neither the order of keys nor white space counts, and everything else
//! does, what this version does not know included.
//!
//! Canonical: no white space, keys sorted by their bytes, texts and numbers as `serde_json` writes them. Plans hold no
//! fractions.

use std::fmt;

use serde_json::Value;

use crate::digest::sha256_hex;

/// The key that is left out.
pub(super) const KEY: &str = "hash";

/// The hash of a document, its own `hash` left out.
pub(super) fn of(document: &Value) -> String {
    let mut text = String::new();
    match document {
        Value::Object(object) => {
            let rest = object.iter().filter(|(key, _)| *key != KEY);
            write_object(rest, &mut text);
        }
        other => write(other, &mut text),
    }
    format!("sha256:{}", sha256_hex(text.as_bytes()))
}

fn write(value: &Value, text: &mut String) {
    match value {
        Value::Object(object) => write_object(object.iter(), text),
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write(item, text);
            }
            text.push(']');
        }
        // Writing to a String cannot fail.
        scalar => fmt::Write::write_fmt(text, format_args!("{scalar}")).unwrap_or_default(),
    }
}

/// A key as JSON writes it; those of plans hold nothing that it would escape.
fn write_key(key: &str, text: &mut String) {
    if key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        text.push('"');
        text.push_str(key);
        text.push('"');
    } else {
        text.push_str(&Value::from(key).to_string());
    }
}

fn write_object<'a>(entries: impl Iterator<Item = (&'a String, &'a Value)>, text: &mut String) {
    let mut entries: Vec<_> = entries.collect();
    entries.sort_unstable_by_key(|(key, _)| *key);
    text.push('{');
    for (index, (key, value)) in entries.into_iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        write_key(key, text);
        text.push(':');
        write(value, text);
    }
    text.push('}');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(json: &str) -> String {
        of(&serde_json::from_str(json).unwrap())
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
