//! Detection of other programs that set write caches on this machine: their settings at boot, at resume or
//! when a disk appears override a policy.
//!
//! Only their configuration is read: hdparm.conf(5), udisks(8) (`WriteCacheEnabled` of a drive),
//! smartd.conf(5) (`-e wcache,on`), udev rules, and profiles of tuned and TLP that write the attribute or
//! call hdparm or sdparm. Files created by plumb are excluded.

use plumb_linux::tree::Tree;

/// A program with its configuration: files, or directories whose files with this extension are read.
struct Configurator {
    program: &'static str,
    files: &'static [&'static str],
    directories: &'static [(&'static str, &'static str)],
}

const CONFIGURATORS: [Configurator; 6] = [
    Configurator { program: "hdparm", files: &["/etc/hdparm.conf"], directories: &[] },
    Configurator { program: "udisks2", files: &[], directories: &[("/etc/udisks2", ".conf")] },
    Configurator {
        program: "smartd",
        files: &["/etc/smartd.conf", "/etc/smartmontools/smartd.conf"],
        directories: &[],
    },
    Configurator { program: "TLP", files: &["/etc/tlp.conf"], directories: &[("/etc/tlp.d", ".conf")] },
    Configurator { program: "tuned", files: &[], directories: &[("/etc/tuned", "/tuned.conf")] },
    Configurator {
        program: "udev",
        files: &[],
        directories: &[
            ("/etc/udev/rules.d", ".rules"),
            ("/run/udev/rules.d", ".rules"),
            ("/usr/lib/udev/rules.d", ".rules"),
        ],
    },
];

/// Returns each configuration line that changes write caches: `hdparm: /etc/hdparm.conf: write_cache = off`.
pub(crate) fn find(tree: &dyn Tree) -> Vec<String> {
    let mut found = Vec::new();
    for configurator in &CONFIGURATORS {
        for file in files(tree, configurator) {
            let text = tree.text(&file).unwrap_or_default();
            let lines = text.lines().map(str::trim).filter(|line| sets_write_cache(line));
            found.extend(lines.map(|line| format!("{}: {file}: {line}", configurator.program)));
        }
    }
    found
}

fn files(tree: &dyn Tree, configurator: &Configurator) -> Vec<String> {
    let mut files: Vec<String> = configurator.files.iter().map(|file| (*file).to_owned()).collect();
    for (directory, ending) in configurator.directories {
        let names = tree.list(directory).unwrap_or_default();
        let own = |name: &&String| !name.contains("plumb");
        files.extend(names.iter().filter(own).filter_map(|name| match ending.strip_prefix('/') {
            Some(file) => Some(format!("{directory}/{name}/{file}")),
            None => name.ends_with(ending).then(|| format!("{directory}/{name}")),
        }));
    }
    files
}

/// Returns true for an active line that sets a write cache.
fn sets_write_cache(line: &str) -> bool {
    let line = line.split('#').next().unwrap_or_default();
    let has = |word: &str| line.contains(word);
    let by_program = (has("hdparm") && has("-W")) || (has("sdparm") && has("WCE"));
    by_program || ["write_cache", "WriteCacheEnabled", "wcache", "cache_type"].iter().any(|word| has(word))
}

#[cfg(test)]
mod tests {
    use plumb_linux::tree::RecordedTree;

    use super::*;

    #[test]
    fn settings_in_force_are_named_with_their_files() {
        let mut tree = RecordedTree::new();
        assert!(find(&tree).is_empty());
        tree.put_text(
            "/etc/hdparm.conf",
            "# write_cache = off\n/dev/sda {\n  write_cache = off\n  apm = 127\n}\n",
        );
        tree.put_text("/etc/udisks2/WD-1.conf", "[ATA]\nWriteCacheEnabled=true\nStandbyTimeout=240\n");
        tree.put_text("/etc/smartd.conf", "DEVICESCAN -e wcache,on -a\n");
        tree.put_text("/etc/tuned/fast/tuned.conf", "[sysfs]\n/sys/block/sda/queue/write_cache=write back\n");
        let rule = "ACTION==\"add\", RUN+=\"/sbin/hdparm -W0 /dev/%k\"";
        tree.put_text("/etc/udev/rules.d/99-ceph.rules", &format!("{rule}\n"));
        tree.put_text("/etc/udev/rules.d/60-plumb-policy.rules", &format!("{rule}\n"));
        tree.put_text("/usr/lib/udev/rules.d/85-hdparm.rules", "RUN+=\"/lib/udev/hdparm\"\n");
        assert_eq!(
            find(&tree),
            [
                "hdparm: /etc/hdparm.conf: write_cache = off".to_owned(),
                "udisks2: /etc/udisks2/WD-1.conf: WriteCacheEnabled=true".to_owned(),
                "smartd: /etc/smartd.conf: DEVICESCAN -e wcache,on -a".to_owned(),
                "tuned: /etc/tuned/fast/tuned.conf: /sys/block/sda/queue/write_cache=write back".to_owned(),
                format!("udev: /etc/udev/rules.d/99-ceph.rules: {rule}"),
            ]
        );
    }
}
