//! Namespaces of an NVMe controller, which share a write cache (NVM Express 2.0, figure 317: feature 06h is
//! of scope "controller").

use plumb_linux::tree::Tree;

/// Returns the names of the other namespaces of the controller of the namespace called `name`; none for other
/// disks.
pub fn siblings(tree: &dyn Tree, name: &str) -> Vec<String> {
    if !is_namespace(name) {
        return Vec::new();
    }
    // With native multipath the disks are in the directory of the subsystem, otherwise in the controller's.
    let sysfs = tree.canonical(&format!("/sys/class/block/{name}")).unwrap_or_default();
    let parent = sysfs.rsplit_once('/').map_or("", |(parent, _)| parent);
    let mut names = tree.list(parent).unwrap_or_default();
    names.retain(|other| other != name && is_namespace(other));
    names.sort_by(|left, right| crate::waves::name_order(left).cmp(&crate::waves::name_order(right)));
    names
}

/// Returns true for `nvme0n1`, but not for a controller (`nvme0`), a path of a multipath namespace
/// (`nvme0c0n1`) or a partition.
fn is_namespace(name: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let numbers = name.strip_prefix("nvme").and_then(|rest| rest.split_once('n'));
    numbers.is_some_and(|(controller, namespace)| digits(controller) && digits(namespace))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_are_told_from_controllers_paths_and_partitions() {
        for (name, expected) in [
            ("nvme0n1", true),
            ("nvme12n345", true),
            ("nvme0", false),
            ("nvme0c1n1", false),
            ("nvme0n1p1", false),
            ("nvmen1", false),
            ("sda", false),
        ] {
            assert_eq!(is_namespace(name), expected, "{name}");
        }
    }
}
