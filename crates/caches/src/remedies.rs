//! Commands that messages suggest as remedies. Each can be typed as printed, except that a word in capitals
//! stands for a value that only the user knows.

use std::fmt::Display;

use plumb_guard::cache::config::CacheConfig;
use plumb_guard::cache::device_place::DevicePlace;
use plumb_text::shell_word;

/// Returns the command that serves the cache `name` with these `options`.
pub fn serving(name: &str, options: &str) -> String {
    let space = if options.is_empty() { "" } else { " " };
    format!("`plumb cache serve {}{space}{options} --attach` (or --nbd SOCKET)", shell_word(name))
}

/// Returns the remedy for a cache whose devices are not at the paths `missing`, but may have others.
pub(crate) fn adopt_command(config: &CacheConfig, missing: &[&str]) -> String {
    let word = |place: &DevicePlace| match missing.contains(&&*place.path) {
        true => DevicePlace { path: "NEW".to_owned(), ..place.clone() }.to_string(),
        false => shell_word(&place.to_string()),
    };
    let logs: String = config.legs.iter().map(|leg| format!(" --log {}", word(leg))).collect();
    format!(
        "if its path is another one now, name that in the place of NEW: `plumb cache adopt --name {} --backing \
         {}{logs}`",
        shell_word(&config.name),
        word(&DevicePlace::whole(&config.backing))
    )
}

/// Returns the remedy of last resort for a cache that cannot be opened.
pub fn last_resort(name: &str, uuid: impl Display) -> String {
    format!(
        "only if what its log holds may be lost, give it up with `plumb cache detach {} --discard-dirty {uuid}`",
        shell_word(name)
    )
}
