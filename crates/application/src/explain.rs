//! Description of a profile as text.

use std::fmt::Write;

use crate::profile::{Extent, Profile, Work};

/// Returns the description of a profile: its pattern, the source of the pattern, its limits, its variants,
/// and what it does not model.
pub fn explain(profile: &Profile) -> String {
    let mut text = format!("{}: {}\n\n{}\n", profile.name, profile.summary, profile.pattern);
    // Writing to a string cannot fail.
    let mut line = |what: &str, rest: &str| {
        writeln!(text, "\n{what}: {rest}").expect("a string takes all that is written");
    };
    line("Provenance", &format!("{}. {}", profile.provenance.name(), profile.source));
    line("Not modelled", &profile.leaves_out);
    let criteria: Vec<String> = profile
        .criteria
        .iter()
        .map(|criterion| format!("{} ({})", criterion.in_words(), criterion.why))
        .collect();
    line("Criteria", &if criteria.is_empty() { "none is published".to_owned() } else { criteria.join("; ") });
    let variants = profile
        .variants
        .iter()
        .map(|variant| format!("\n  {}:{:<16} {}", profile.name, variant.name, variant.summary));
    line("Variants (the first is the default)", &variants.collect::<String>());
    line("Runs", &extent(profile));
    text
}

fn extent(profile: &Profile) -> String {
    let how = match profile.work {
        Work::Blocks(_) => "on a file or a device",
        Work::Files(_) | Work::Sqlite(_) => "in a directory of its own, removed afterwards",
    };
    match profile.extent {
        Extent::Seconds(seconds) => format!("{how}, for {seconds} s by default"),
        Extent::Files(count) => format!("{how}, until {count} files are done by default"),
        Extent::Transactions(count) => format!("{how}, for {count} transactions by default"),
    }
}
