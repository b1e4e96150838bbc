//! The tree of a mock machine, fast enough that a measurement of a thousand disks does not measure the mock.
//!
//! Files are also kept by their paths without links. A path that is not found there is looked up in the tree,
//! which knows the reason of its absence.

use std::collections::{BTreeSet, HashMap};

use plumb_linux::tree::{Absence, Answer, RecordedTree, Stat, Tree};

#[derive(Default)]
pub(super) struct Files {
    tree: RecordedTree,
    /// Files by their paths without links.
    flat: HashMap<String, Vec<u8>>,
    /// Names in directories, by the directories' paths without links.
    names: HashMap<String, BTreeSet<String>>,
    /// Links by their paths without other links, with their targets, which are without links, too.
    links: HashMap<String, String>,
}

impl Files {
    pub(super) fn put_text(&mut self, path: &str, text: &str) {
        self.put_bytes(path, text.as_bytes());
    }

    pub(super) fn put_bytes(&mut self, path: &str, bytes: &[u8]) {
        self.tree.put_bytes(path, bytes);
        if self.flat.insert(path.to_owned(), bytes.to_vec()).is_none() {
            self.enter(path);
        }
    }

    pub(super) fn put_link(&mut self, path: &str, target: &str) {
        self.tree.put_link(path, target);
        self.enter(path);
        if let Ok(plain) = self.tree.canonical(path) {
            self.links.insert(path.to_owned(), plain);
        }
    }

    /// Makes the file or directory unreadable.
    pub(super) fn deny(&mut self, path: &str) {
        self.remove(path);
        self.tree.put_absence(path, Absence::Denied);
        self.enter(path);
    }

    pub(super) fn put_stat(&mut self, path: &str, stat: Stat) {
        self.tree.put_stat(path, stat);
    }

    pub(super) fn remove(&mut self, path: &str) {
        self.tree.remove(path);
        self.flat.retain(|file, _| !file.starts_with(path));
        self.names.retain(|directory, _| !directory.starts_with(path));
        self.links.retain(|link, plain| !link.starts_with(path) && !plain.starts_with(path));
        if let Some((parent, name)) = path.rsplit_once('/')
            && let Some(names) = self.names.get_mut(parent)
        {
            names.remove(name);
        }
    }

    /// Enters `path` into its directory, and that into its parent.
    fn enter(&mut self, path: &str) {
        let Some((parent, name)) = path.rsplit_once('/') else { return };
        let known = self.names.contains_key(parent);
        self.names.entry(parent.to_owned()).or_default().insert(name.to_owned());
        if !known {
            self.enter(parent);
        }
    }

    /// Returns `path` with its first link followed; links do not lead to other links here.
    fn plain(&self, path: &str) -> Option<String> {
        let ends = path.match_indices('/').skip(1).map(|(at, _)| at).chain([path.len()]);
        let mut links = ends.filter_map(|end| Some((end, self.links.get(&path[..end])?)));
        links.next().map(|(end, plain)| format!("{plain}{}", &path[end..]))
    }
}

impl Tree for Files {
    fn read(&self, path: &str) -> Answer<Vec<u8>> {
        let found = self.flat.get(path).or_else(|| self.flat.get(&self.plain(path)?));
        found.map_or_else(|| self.tree.read(path), |bytes| Ok(bytes.clone()))
    }

    fn list(&self, path: &str) -> Answer<Vec<String>> {
        let found = self.names.get(path).or_else(|| self.names.get(&self.plain(path)?));
        found.map_or_else(|| self.tree.list(path), |names| Ok(names.iter().cloned().collect()))
    }

    fn link(&self, path: &str) -> Answer<String> {
        self.tree.link(path)
    }

    fn stat(&self, path: &str) -> Answer<Stat> {
        self.tree.stat(path)
    }

    fn canonical(&self, path: &str) -> Answer<String> {
        let there = |plain: &String| self.names.contains_key(plain) || self.flat.contains_key(plain);
        self.plain(path).filter(there).map_or_else(|| self.tree.canonical(path), Ok)
    }
}

#[cfg(test)]
mod tests {
    use plumb_linux::tree::Absence;

    use super::*;

    #[test]
    fn it_answers_as_the_tree_behind_it() {
        let mut files = Files::default();
        files.put_text("/sys/devices/host0/0:0:0:0/model", "A");
        files.put_text("/sys/devices/host0/0:0:0:0/block/sda/dev", "8:0");
        files.put_link("/sys/devices/host0/0:0:0:0/block/sda/device", "../..");
        files.put_link("/sys/class/block/sda", "/sys/devices/host0/0:0:0:0/block/sda");
        files.put_text("/sys/devices/host0/0:0:0:0/block/sda/size", "1");
        let paths = [
            "/sys/class/block",
            "/sys/class/block/sda",
            "/sys/class/block/sda/size",
            "/sys/class/block/sda/device/model",
            "/sys/devices/host0/0:0:0:0/block/sda/device",
            "/sys/devices/host0/0:0:0:0/block/sda/device/model",
            "/sys/devices/host0/0:0:0:0/block/sda/none",
            "/sys/none/at/all",
        ];
        let agrees = |files: &Files| {
            for path in paths {
                assert_eq!(files.read(path), files.tree.read(path), "{path}");
                assert_eq!(files.list(path), files.tree.list(path), "{path}");
                assert_eq!(files.canonical(path), files.tree.canonical(path), "{path}");
            }
        };
        agrees(&files);
        assert_eq!(files.read("/sys/none"), Err(Absence::NotThere));
        files.remove("/sys/class/block/sda");
        agrees(&files);
        files.remove("/sys/devices/host0/0:0:0:0/block/sda");
        agrees(&files);
    }
}
