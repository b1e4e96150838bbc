//! The list of models whose makers say that their cache survives a power cut: `models.toml`, shipped inside.

use std::sync::OnceLock;

use serde::Deserialize;

/// One entry.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// How the model of such a drive starts.
    pub model: String,
    /// Description of the model, and of what protects it.
    pub what: String,
    /// Source of the claim: who says so, and where.
    pub source: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    model: Vec<Model>,
}

/// Returns the entry for a drive that calls itself `model`; the longest start that fits.
pub fn find(model: &str) -> Option<&'static Model> {
    static LIST: OnceLock<Vec<Model>> = OnceLock::new();
    let list = LIST.get_or_init(|| {
        let list: List =
            toml::from_str(include_str!("models.toml")).expect("models.toml is checked by a test");
        list.model
    });
    list.iter().filter(|entry| model.starts_with(&entry.model)).max_by_key(|entry| entry.model.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_has_a_source_and_is_found() {
        let list: List = toml::from_str(include_str!("models.toml")).unwrap();
        for entry in &list.model {
            assert!(entry.source.len() > 20 && entry.model.len() >= 8, "{entry:?}");
            assert_eq!(find(&format!("{}480G7", entry.model)).map(|found| &found.model), Some(&entry.model));
        }
        assert_eq!(find("QEMU HARDDISK"), None);
        assert_eq!(find(""), None);
    }
}
