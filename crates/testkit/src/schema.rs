//! JSON documents, held against the schemas that are shipped.
//!
//! Debian's python3-jsonschema does it, in one process for all tests of a program: as a library of Rust a
//! validator brings more than fifty crates, most of them for text in all languages, which take longer to
//! build than all of the checks to run.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{LazyLock, Mutex, PoisonError};

use serde_json::{Value, json};

/// A schema of those that are shipped.
pub struct Schema {
    name: String,
    schema: Value,
}

impl Schema {
    /// Reads the schema of that name, as it is: what a document must hold, now and later. The schema that it
    /// refers to (`../NAME/VERSION#...`) is embedded under `$defs` with its own `$id`, where a validator of
    /// 2020-12 finds it.
    ///
    /// # Panics
    /// If there is none.
    pub fn open(name: &str) -> Self {
        let path = format!("{}/../report/schemas/{name}.schema.json", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&path).expect(&path);
        let mut schema: Value = serde_json::from_str(&text).expect(&path);
        let base = schema["$ref"].as_str().and_then(|to| to.strip_prefix("../")?.split('/').next());
        if let Some(base) = base.map(Self::open) {
            schema["$defs"][base.name] = base.schema;
        }
        Self { name: name.to_owned(), schema }
    }

    /// Returns the schema's `$id`; nothing if it has none.
    pub fn id(&self) -> &str {
        self.schema["$id"].as_str().unwrap_or_default()
    }

    /// Reads the schema of a document, which says its name: `plumb/load/1`.
    ///
    /// # Panics
    /// If the document says none, or there is none of that name.
    pub fn of_document(document: &Value) -> Self {
        let name = document["schema"].as_str().expect("a document that names its schema");
        Self::closed(name.split('/').nth(1).expect(name))
    }

    /// Reads the schema of that name with every object closed: what a document may hold today.
    ///
    /// # Panics
    /// If there is none.
    pub fn closed(name: &str) -> Self {
        let mut open = Self::open(name);
        close(&mut open.schema);
        open
    }

    /// Returns the schema's complaints about the document.
    ///
    /// # Panics
    /// If python3-jsonschema is not installed; `cargo xtask test` installs it.
    pub fn complaints(&self, document: &Value) -> Vec<String> {
        let mut validator = VALIDATOR.lock().unwrap_or_else(PoisonError::into_inner);
        let (python, answers) = &mut *validator;
        let asked = python.stdin.as_mut().expect("a pipe");
        let mut answer = String::new();
        let told = writeln!(asked, "{}", json!([self.schema, document]))
            .and_then(|()| answers.read_line(&mut answer));
        assert!(
            told.is_ok_and(|length| length > 0),
            "python3-jsonschema is not here: cargo xtask test installs it"
        );
        serde_json::from_str(&answer).expect("a list of complaints")
    }

    /// Asserts that the document is as it says.
    ///
    /// # Panics
    /// If it is not.
    pub fn assert_holds(&self, document: &Value) {
        assert_eq!(self.complaints(document), [""; 0], "{}: {document:#}", self.name);
    }

    /// Asserts that a key that is missing in the object at `pointer` is noticed, whichever it is but one of
    /// the `optional`.
    ///
    /// # Panics
    /// If one is not.
    pub fn assert_requires_keys(&self, document: &Value, pointer: &str, optional: &dyn Fn(&str) -> bool) {
        let object = document.pointer(pointer).and_then(Value::as_object).expect("an object");
        for key in object.keys().filter(|key| !optional(key)) {
            let mut without = document.clone();
            without.pointer_mut(pointer).and_then(Value::as_object_mut).expect("an object").remove(key);
            assert!(!self.complaints(&without).is_empty(), "{}: {pointer}/{key} is not required", self.name);
        }
    }
}

/// The process that holds documents against schemas, which ends with the input that this one closes.
static VALIDATOR: LazyLock<Mutex<(Child, BufReader<ChildStdout>)>> = LazyLock::new(|| {
    let mut python = Command::new("python3");
    python.args(["-c", include_str!("schema.py")]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut python = python.spawn().expect("python3 is needed: cargo xtask test installs it");
    let answers = BufReader::new(python.stdout.take().expect("a pipe"));
    Mutex::new((python, answers))
});

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
