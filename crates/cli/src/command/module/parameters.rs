//! The parameters of a task, as the modules of the collection take them: Ansible's own rules of what is a truth, a number, a list or a path, which
//! nobody applies for a module that is no Python.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::{Map, Value};

use super::Failure;

/// What Ansible takes for true, and for false.
const TRUE: [&str; 6] = ["y", "yes", "on", "1", "true", "t"];
const FALSE: [&str; 6] = ["n", "no", "off", "0", "false", "f"];
/// Users and their homes.
const USERS: &str = "/etc/passwd";

/// The parameters that were not looked at yet, and the names of all that can be. What is null was not given.
pub(super) struct Parameters {
    module: String,
    typed: Map<String, Value>,
    known: BTreeSet<&'static str>,
}

impl Parameters {
    /// Those of a task of this module.
    pub(super) fn of(module: &str, typed: Map<String, Value>) -> Self {
        Self { module: module.to_owned(), typed, known: BTreeSet::new() }
    }

    fn value(&mut self, name: &'static str) -> Option<Value> {
        self.known.insert(name);
        self.typed.remove(name).filter(|value| !value.is_null())
    }

    fn converted<T>(
        &mut self,
        name: &'static str,
        kind: &str,
        convert: fn(&Value) -> Option<T>,
    ) -> Result<Option<T>, Failure> {
        let Some(value) = self.value(name) else { return Ok(None) };
        let wrong =
            || Failure::new(format!("argument '{name}' is {value} and cannot be converted to {kind}"));
        convert(&value).map(Some).ok_or_else(wrong)
    }

    /// A text; also a number or a truth.
    pub(super) fn text(&mut self, name: &'static str) -> Result<Option<String>, Failure> {
        self.converted(name, "a str", text)
    }

    /// A path, in which `~` and variables of the environment are what they stand for.
    pub(super) fn path(&mut self, name: &'static str) -> Result<Option<PathBuf>, Failure> {
        Ok(self.text(name)?.map(|text| PathBuf::from(expanded(&text))))
    }

    /// A truth, however it is written.
    pub(super) fn truth(&mut self, name: &'static str) -> Result<Option<bool>, Failure> {
        self.converted(name, "a bool", |value| {
            let text = text(value)?.trim().to_lowercase();
            let is_one = value.is_f64() && value.as_f64() == Some(1.0);
            let is_none = value.is_f64() && value.as_f64() == Some(0.0);
            match &*text {
                text if is_one || TRUE.contains(&text) => Some(true),
                text if is_none || FALSE.contains(&text) => Some(false),
                _ => None,
            }
        })
    }

    /// A whole number, or one as text.
    pub(super) fn number(&mut self, name: &'static str) -> Result<Option<i64>, Failure> {
        self.converted(name, "an int", |value| match value {
            Value::String(text) => text.trim().parse().ok(),
            value => value.as_i64(),
        })
    }

    /// Texts: a list, or one text with commas between them.
    pub(super) fn texts(&mut self, name: &'static str) -> Result<Option<Vec<String>>, Failure> {
        self.converted(name, "a list", |value| match value {
            Value::Array(all) => all.iter().map(text).collect(),
            Value::String(text) => Some(text.split(',').map(str::to_owned).collect()),
            Value::Number(_) | Value::Bool(_) => Some(vec![text(value)?]),
            _ => None,
        })
    }

    /// One of these words. YAML takes on and off for truths: they are the word of `choices` that is one.
    pub(super) fn choice(
        &mut self,
        name: &'static str,
        choices: &[&'static str],
    ) -> Result<Option<&'static str>, Failure> {
        let Some(typed) = self.text(name)? else { return Ok(None) };
        let stands_for = match &*typed {
            "True" => &TRUE[..],
            "False" => &FALSE[..],
            _ => &[],
        };
        let is_meant = |choice: &&&str| **choice == typed || stands_for.contains(*choice);
        let wrong =
            || Failure::new(format!("value of {name} must be one of: {}, got: {typed}", choices.join(", ")));
        choices.iter().find(is_meant).copied().map(Some).ok_or_else(wrong)
    }

    /// Some of these words.
    pub(super) fn choices(
        &mut self,
        name: &'static str,
        choices: &[&'static str],
    ) -> Result<Option<Vec<String>>, Failure> {
        let Some(typed) = self.texts(name)? else { return Ok(None) };
        let unknown: Vec<&str> =
            typed.iter().map(String::as_str).filter(|typed| !choices.contains(typed)).collect();
        if unknown.is_empty() {
            return Ok(Some(typed));
        }
        let choices = choices.join(", ");
        Err(Failure::new(format!(
            "value of {name} must be one or more of: {choices}. Got no match for: {}",
            unknown.join(", ")
        )))
    }

    /// Parameters within one: a dictionary, or one as text.
    pub(super) fn within(&mut self, name: &'static str) -> Result<Option<Self>, Failure> {
        let typed = self.converted(name, "a dict", |value| match value {
            Value::Object(typed) => Some(typed.clone()),
            Value::String(text) => serde_json::from_str(text).ok().or_else(|| pairs(text)),
            _ => None,
        })?;
        Ok(typed.map(|typed| Self::of(&self.module, typed)))
    }

    /// Which of these parameters were given, also as null: what Ansible counts where one of several is needed.
    pub(super) fn given(&self, names: &[&'static str]) -> usize {
        names.iter().filter(|name| self.typed.contains_key(**name)).count()
    }

    /// All have been looked at: others are a mistake.
    pub(super) fn end(&self) -> Result<(), Failure> {
        if self.typed.is_empty() {
            return Ok(());
        }
        let unknown: Vec<&str> = self.typed.keys().map(String::as_str).collect();
        let known: Vec<&str> = self.known.iter().copied().collect();
        Err(Failure::new(format!(
            "Unsupported parameters for ({}) module: {}. Supported parameters include: {}.",
            self.module,
            unknown.join(", "),
            known.join(", ")
        )))
    }
}

/// A value that was needed.
pub(super) fn required<T>(name: &str, value: Option<T>) -> Result<T, Failure> {
    value.ok_or_else(|| Failure::new(format!("missing required arguments: {name}")))
}

/// As Python writes it.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(true) => Some("True".to_owned()),
        Value::Bool(false) => Some("False".to_owned()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// `by=Jane, reason='a battery'`: commas or blanks between them, quotes and backslashes as in a shell.
fn pairs(typed: &str) -> Option<Map<String, Value>> {
    let (mut fields, mut quote, mut is_escaped) = (vec![String::new()], None, false);
    for letter in typed.trim().chars() {
        let Some(field) = fields.last_mut() else { break };
        match letter {
            letter if std::mem::take(&mut is_escaped) => field.push(letter),
            '\\' => is_escaped = true,
            '\'' | '"' if quote.is_none() => quote = Some(letter),
            letter if quote == Some(letter) => quote = None,
            ',' | ' ' if quote.is_none() => fields.push(String::new()),
            letter => field.push(letter),
        }
    }
    let parted = |field: &String| {
        let (name, value) = field.split_once('=')?;
        Some((name.to_owned(), Value::String(value.to_owned())))
    };
    fields.iter().filter(|field| !field.is_empty()).map(parted).collect()
}

/// A path with the variables and the home that it names.
fn expanded(text: &str) -> String {
    let text = with_variables(text);
    let Some(rest) = text.strip_prefix('~') else { return text };
    let (user, below) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    match home(user) {
        Some(home) if below.is_empty() => home,
        Some(home) => format!("{}{below}", home.trim_end_matches('/')),
        None => text,
    }
}

/// `$NAME` and `${NAME}`; one that is not there stays as it is.
fn with_variables(text: &str) -> String {
    let mut whole = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        whole.push_str(before);
        let (name, length) = match after.strip_prefix('{').and_then(|named| named.split_once('}')) {
            Some((name, _)) => (name, name.len() + 2),
            None => {
                let is_of_name = |letter: char| letter.is_alphanumeric() || letter == '_';
                let length = after.find(|letter| !is_of_name(letter)).unwrap_or(after.len());
                (&after[..length], length)
            }
        };
        match std::env::var(name).ok().filter(|_| !name.is_empty()) {
            Some(value) => whole.push_str(&value),
            None => whole.extend(["$", &after[..length]]),
        }
        rest = &after[length..];
    }
    whole + rest
}

/// The home of a user; of this one without a name.
fn home(user: &str) -> Option<String> {
    if user.is_empty() {
        return std::env::home_dir()?.into_os_string().into_string().ok();
    }
    let users = std::fs::read_to_string(USERS).ok()?;
    users.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        let [name, _, _, _, _, home, ..] = fields[..] else { return None };
        (name == user).then(|| home.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn given(value: Value) -> Parameters {
        Parameters::of("plumb_test", Map::from_iter([("it".to_owned(), value)]))
    }

    #[test]
    fn what_stands_for_something_else_is_replaced_and_what_does_not_stays() {
        let home = home("").unwrap();
        assert_eq!(expanded("~/a~b"), format!("{}/a~b", home.trim_end_matches('/')));
        assert_eq!(expanded("~root/x"), "/root/x");
        for same in ["/a/~", "~nobody-of-this-name/x", "$NOT_THERE_AT_ALL/${NEITHER}/$", "${open", "é$é"] {
            assert_eq!(expanded(same), same);
        }
        let path = std::env::var("PATH").unwrap();
        assert_eq!(with_variables("a${PATH}b$PATH-c"), format!("a{path}b{path}-c"));
    }

    #[test]
    fn a_truth_may_be_written_in_many_ways_and_a_number_in_two() {
        for value in [json!(true), json!(1), json!(1.0), json!("Yes"), json!(" on "), json!("T")] {
            assert_eq!(given(value.clone()).truth("it").unwrap(), Some(true), "{value}");
        }
        for value in [json!(false), json!(0), json!("OFF"), json!("n")] {
            assert_eq!(given(value.clone()).truth("it").unwrap(), Some(false), "{value}");
        }
        assert!(given(json!("perhaps")).truth("it").is_err());
        assert_eq!(given(json!(" 4 ")).number("it").unwrap(), Some(4));
        assert!(given(json!("four")).number("it").is_err());
        assert!(given(json!(4.5)).number("it").is_err());
        assert_eq!(given(Value::Null).number("it").unwrap(), None);
    }

    #[test]
    fn a_dictionary_may_be_a_text() {
        for typed in [r#"{"by": "J, D", "until": "x"}"#, r#"by="J, D" until=x"#, r"by='J, D',until=\x"] {
            let mut within = given(json!(typed)).within("it").unwrap().unwrap();
            assert_eq!(within.text("by").unwrap().as_deref(), Some("J, D"), "{typed}");
            assert_eq!(within.text("until").unwrap().as_deref(), Some("x"));
            within.end().unwrap();
        }
        assert!(given(json!("nothing")).within("it").is_err());
    }
}
