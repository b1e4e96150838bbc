//! Write-back caches of plumb that are attached as a loop device. Their configuration names the devices.

use serde::Deserialize;

use super::surveyor::Surveyor;
use crate::facts::{Mark, Node};
use crate::model::{Cache, LayerKind};

/// What of the configuration matters here.
#[derive(Deserialize)]
struct Config {
    uuid: String,
    mode: String,
    backing: String,
    legs: Vec<String>,
}

impl Surveyor<'_> {
    /// Whether what plumb has attached under this name is a cache, rather than a simulated drive.
    pub(super) fn is_plumb_cache(&self, name: &str) -> bool {
        self.tree.stat(&format!("/run/plumb/cache/{name}.control")).is_ok()
    }

    /// A flush becomes a flush of the log, and of the backing device if something went past the log.
    pub(super) fn plumb_cache(&mut self, node: &mut Node, name: &str) {
        node.kind = LayerKind::WriteBackCache;
        let file = format!("/var/lib/plumb/cache/{name}.json");
        let config = self.tree.text(&file).ok().and_then(|text| serde_json::from_str::<Config>(&text).ok());
        let Some(Config { uuid, mode, backing, legs }) = config else {
            node.cache = Cache::Unknown;
            node.mark(Mark::Unseen {
                what: format!("the devices of the cache {name} are not known: {file} cannot be read"),
            });
            return;
        };
        node.identity = Some(uuid);
        // What it holds is on its devices, which are below and speak for themselves; a protected log is not flushed.
        let is_protected = mode == "protected";
        node.cache = if is_protected { Cache::Protected } else { Cache::None };
        let means = match is_protected {
            true => {
                "flushes end here: somebody vouches that the devices of the log keep what they acknowledged"
            }
            false => "a flush becomes a flush of the log; nothing that was acknowledged is in memory alone",
        };
        node.saw(file, format!("{mode}, log {}", legs.join(" ")), means);
        for path in legs.iter().chain([&backing]) {
            match self.beneath_path(path) {
                Some(below) => node.below.push(below),
                None => node.mark(Mark::Unseen { what: format!("{path} is not visible from here") }),
            }
        }
    }
}
