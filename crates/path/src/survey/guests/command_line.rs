//! Command-line parsing for hypervisors: options with a value, and values that are lists of settings.

/// Returns the values of the options with one of these names, in order: `-drive VALUE`, `--disk=VALUE`. An
/// option takes all words up to the next one that begins with a hyphen.
pub(super) fn values<'a>(words: &'a [String], names: &[&str]) -> Vec<&'a str> {
    let mut values = Vec::new();
    let mut is_wanted = false;
    for word in words.iter().skip(1) {
        match word.split_once('=') {
            Some((name, value)) if names.contains(&name) => {
                values.push(value);
                is_wanted = false;
            }
            _ if word.starts_with('-') => is_wanted = names.contains(&word.as_str()),
            _ if is_wanted => values.push(word.as_str()),
            _ => {}
        }
    }
    values
}

/// Settings `name=value,name=value`; two commas stand for a comma in a value (QEMU, "Standard options").
#[derive(Debug, Default)]
pub(super) struct Settings(Vec<(String, String)>);

impl Settings {
    /// Parses settings. A word without `=` is the value of `first` if it comes first, else a name that is on.
    pub(super) fn parse(text: &str, first: &str) -> Self {
        const COMMA: &str = "\u{0}";
        let text = text.replace(",,", COMMA);
        let parts = text.split(',').enumerate().map(|(number, part)| {
            let part = part.replace(COMMA, ",");
            match part.split_once('=') {
                Some((name, value)) => (name.to_owned(), value.to_owned()),
                None if number == 0 && !first.is_empty() => (first.to_owned(), part),
                None => (part, "on".to_owned()),
            }
        });
        Self(parts.collect())
    }

    /// Parses a JSON object as settings; members of inner objects are named `outer.inner`.
    pub(super) fn from_json(text: &str) -> Option<Self> {
        let mut settings = Self::default();
        settings.add(&serde_json::from_slice(text.as_bytes()).ok()?, "");
        Some(settings)
    }

    fn add(&mut self, value: &serde_json::Value, name: &str) {
        match value {
            serde_json::Value::Object(members) => {
                for (member, value) in members {
                    let name = if name.is_empty() { member.clone() } else { format!("{name}.{member}") };
                    self.add(value, &name);
                }
            }
            serde_json::Value::String(text) => self.0.push((name.to_owned(), text.clone())),
            other => self.0.push((name.to_owned(), other.to_string())),
        }
    }

    /// Returns the value of a setting; the last occurrence counts.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Returns the image name, and the part before `filename` in the name of the setting. For nested drivers
    /// the innermost has the image.
    pub(super) fn filename(&self) -> Option<(&str, &str)> {
        let named = self.0.iter().filter_map(|(name, value)| {
            let prefix = name.strip_suffix("filename")?;
            (prefix.is_empty() || prefix.ends_with('.')).then_some((prefix, value.as_str()))
        });
        named.max_by_key(|(prefix, _)| prefix.len())
    }

    /// Returns the value of a boolean setting; `None` if it is not set.
    pub(super) fn is_on(&self, name: &str) -> Option<bool> {
        self.get(name).map(|value| matches!(value, "on" | "true" | "yes" | "1"))
    }
}
