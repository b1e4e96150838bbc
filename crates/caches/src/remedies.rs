//! Commands that messages name as ways out of the state of a cache. Each can be typed as it is printed, but
//! for a word in capitals, which stands for something that only the user knows.

use plumb_guard::cache::config::CacheConfig;
use plumb_guard::cache::device_place::DevicePlace;
use plumb_text::shell_word;

/// Returns the command that serves the cache `name` with these `options` beside the way to reach it.
pub fn serving(name: &str, options: &str) -> String {
    let space = if options.is_empty() { "" } else { " " };
    format!("`plumb cache serve {}{space}{options} --attach` (or --nbd SOCKET)", shell_word(name))
}

/// Returns the way out of a cache that does not find its devices at the paths `missing`: others may lead to
/// them.
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

/// Returns the way out of a cache that cannot be opened.
pub(crate) fn last_resort(CacheConfig { name, uuid, .. }: &CacheConfig) -> String {
    format!(
        "only if what its log holds may be lost, give it up with `plumb cache detach {} --discard-dirty {uuid}`",
        shell_word(name)
    )
}
