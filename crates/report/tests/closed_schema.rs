//! Schemas of JSON documents, as the tests of several crates hold documents against them.

use jsonschema::Validator;
use serde_json::{Value, json};

/// The schema in a file of the crate.
pub(crate) fn schema(name: &str) -> Value {
    let path = format!("{}/{name}", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(&path).expect(&path)).expect(&path)
}

/// The schema with every object closed: what a document may hold today.
pub(crate) fn closed(name: &str) -> Validator {
    fn close(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                if fields.get("type") == Some(&json!("object")) && fields.contains_key("properties") {
                    fields.insert("additionalProperties".to_owned(), json!(false));
                }
                fields.values_mut().for_each(close);
            }
            Value::Array(items) => items.iter_mut().for_each(close),
            _ => {}
        }
    }
    let mut schema = schema(name);
    close(&mut schema);
    jsonschema::validator_for(&schema).expect("a closed schema is a schema")
}

/// What the schema says against the document.
pub(crate) fn complaints(validator: &Validator, document: &Value) -> Vec<String> {
    validator.iter_errors(document).map(|error| format!("{}: {error}", error.instance_path())).collect()
}
