//! RAID controllers of this machine, with the query for their manufacturer's program: the disks behind them
//! and their caches are hidden. plumb never starts these programs, and changes no logical disk.

use std::path::PathBuf;

use plumb_linux::tree::Tree;
use serde::Serialize;

/// A controller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Controller {
    /// SCSI host of the controller: `host0`.
    pub host: String,
    /// Name of the driver.
    pub driver: String,
    /// Manufacturer's program that was found; null if none.
    pub program: Option<String>,
    /// Command that shows what the controller hides.
    pub ask: String,
}

/// Drivers of a family of controllers, and the programs that query them.
struct Family {
    drivers: &'static [&'static str],
    /// Programs with JSON output, in order of preference. They take the same arguments.
    programs: &'static [&'static str],
    /// Arguments for the programs.
    question: &'static str,
    /// True if plumb can parse the output.
    reads: bool,
}

/// Families of controllers that hide their disks. mpt3sas, whose adapters may hide disks or show them, is not
/// among them: the survey reports its volumes.
const FAMILIES: [Family; 3] = [
    Family {
        drivers: &["megaraid_sas", "megaraid_mbox", "megaraid_legacy"],
        programs: &["storcli64", "storcli", "perccli64", "perccli"],
        question: "/cALL show all J",
        reads: true,
    },
    Family {
        drivers: &["hpsa", "smartpqi", "cciss"],
        programs: &["ssacli", "hpssacli"],
        question: "ctrl all show config detail",
        reads: false,
    },
    Family { drivers: &["aacraid"], programs: &["arcconf"], question: "getconfig 1", reads: false },
];

/// Returns all RAID controllers with a SCSI host. `is_installed` tells whether a program exists.
pub fn controllers(tree: &dyn Tree, is_installed: impl Fn(&str) -> bool) -> Vec<Controller> {
    let mut hosts = tree.list("/sys/class/scsi_host").unwrap_or_default();
    hosts.sort_by(|left, right| crate::waves::name_order(left).cmp(&crate::waves::name_order(right)));
    let named = hosts.into_iter().filter_map(|host| {
        let driver = tree.text(&format!("/sys/class/scsi_host/{host}/proc_name")).ok()?;
        let driver = driver.trim().to_owned();
        let family = FAMILIES.iter().find(|family| family.drivers.contains(&driver.as_str()))?;
        let program = family.programs.iter().find(|program| is_installed(program)).copied();
        Some(Controller { ask: ask(family, program), program: program.map(str::to_owned), host, driver })
    });
    named.collect()
}

/// Returns true if the program is installed. It is never started.
pub fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Installation directories of the manufacturers' packages.
    let makers = ["/opt/MegaRAID/storcli", "/opt/MegaRAID/perccli", "/opt/smartstorageadmin/ssacli/bin"];
    let mut places = std::env::split_paths(&path).chain(makers.map(PathBuf::from));
    places.any(|place| place.join(program).is_file())
}

fn ask(family: &Family, program: Option<&str>) -> String {
    let (first, rest) = (family.programs.first().copied().unwrap_or_default(), family.programs.get(1..));
    let others = rest.unwrap_or_default().join(", ");
    let command = format!("{} {}", program.unwrap_or(first), family.question);
    let what = if family.reads {
        format!("`{command} > raid.json`, then `plumb policy show --raid-report raid.json`")
    } else {
        format!("`{command}` prints the cache of each volume as text, which plumb does not read")
    };
    match program {
        Some(_) => what,
        None if others.is_empty() => format!("install {first}; {what}"),
        None => format!("install {first} (or {others}); {what}"),
    }
}

#[cfg(test)]
mod tests {
    use plumb_linux::tree::RecordedTree;

    use super::*;

    fn tree(drivers: &[&str]) -> RecordedTree {
        let mut tree = RecordedTree::new();
        for (number, driver) in drivers.iter().enumerate() {
            tree.put_text(&format!("/sys/class/scsi_host/host{number}/proc_name"), &format!("{driver}\n"));
        }
        tree
    }

    #[test]
    fn each_family_is_asked_with_the_program_that_is_there() {
        let tree = tree(&["ahci", "megaraid_sas", "smartpqi", "aacraid", "mpt3sas"]);
        let found = controllers(&tree, |program| program == "perccli");
        let hosts: Vec<&str> = found.iter().map(|controller| controller.host.as_str()).collect();
        assert_eq!(hosts, ["host1", "host2", "host3"]);
        assert_eq!(found[0].program.as_deref(), Some("perccli"));
        assert_eq!(
            found[0].ask,
            "`perccli /cALL show all J > raid.json`, then `plumb policy show --raid-report raid.json`"
        );
        assert!(found[1].program.is_none() && found[1].ask.starts_with("install ssacli (or hpssacli)"));
        assert!(found[2].ask.contains("which plumb does not read"));
        let without = controllers(&tree, |_| false);
        assert!(
            without[0]
                .ask
                .starts_with("install storcli64 (or storcli, perccli64, perccli); `storcli64 /cALL")
        );
    }

    #[test]
    fn a_machine_without_one_has_none() {
        assert!(controllers(&tree(&["ahci", "usb-storage"]), |_| true).is_empty());
        assert!(controllers(&RecordedTree::new(), |_| true).is_empty());
    }
}
