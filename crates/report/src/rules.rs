//! Descriptions of all rules, those of the survey and those of measurements, for `plumb explain` and the
//! page.

use std::sync::LazyLock;

use plumb_path::{CATALOGUE as SURVEY, Catalogue, Rule};

/// Rules of measurements, profiles and policies.
static MEASURED: LazyLock<Catalogue> = LazyLock::new(|| Catalogue::parse(include_str!("../rules.toml")));

/// Returns all rules, sorted by id.
pub fn all() -> Vec<&'static Rule> {
    let mut rules: Vec<&Rule> = SURVEY.iter().chain(MEASURED.iter()).collect();
    rules.sort_by(|one, other| one.id.cmp(&other.id));
    rules
}

/// Returns the rule with this id, also in the form used in reports: `[steal]`.
pub fn find(id: &str) -> Option<&'static Rule> {
    let id = id.trim().trim_start_matches('[').trim_end_matches(']');
    SURVEY.get(id).or_else(|| MEASURED.get(id))
}
