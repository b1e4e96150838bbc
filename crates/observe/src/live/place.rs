//! Names of file systems, pods and containers.

use crate::file_systems::FileSystem;

use super::names;

/// Number of digits of a container identifier that are shown, as in `docker ps` and `crictl ps`.
const SHORT: usize = 12;
/// Smallest number of digits of an identifier.
const WHOLE: usize = 32;

/// Returns the labels of a file system; for `None` those of all others.
pub(super) fn labels(of: Option<&FileSystem>) -> Vec<(&'static str, String)> {
    let Some(of) = of else { return vec![("mount_point", names::other())] };
    vec![
        ("mount_point", of.mount_point.clone()),
        ("file_system", of.kind.clone()),
        ("device", of.device.clone()),
    ]
}

/// Returns the identifiers of the pod and the container in a cgroup path, in the formats of the kubelet,
/// Docker, podman, containerd and CRI-O; each is empty if absent.
pub(super) fn pod_and_container(cgroup: &str) -> (String, String) {
    let parts = || cgroup.split('/').map(|part| part.trim_end_matches(".slice").trim_end_matches(".scope"));
    let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let pod = |part: &str| {
        let (before, identifier) = part.rsplit_once("pod")?;
        let bare = identifier.replace(['_', '-'], "");
        let is_one = (before.is_empty() || before.ends_with('-')) && bare.len() == WHOLE && is_hex(&bare);
        is_one.then(|| identifier.replace('_', "-"))
    };
    let container = |part: &str| {
        let identifier = part.rsplit(['-', ':']).next()?;
        let is_one = identifier.len() >= WHOLE && is_hex(identifier);
        is_one.then(|| identifier.get(..SHORT).map(str::to_owned)).flatten()
    };
    let is_of_container = |part: &&str| !part.contains("pod") || part.starts_with("libpod");
    let mut containers = parts().rev().filter(is_of_container).filter_map(container);
    (parts().rev().find_map(pod).unwrap_or_default(), containers.next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_and_containers_are_found_in_paths_of_cgroups() {
        let id = "3f2a9c0d1e4b5a69788796a5b4c3d2e1f00112233445566778899aabbccddeef";
        let pod = "0b1c2d3e-1111-2222-3333-444455556666";
        let low = pod.replace('-', "_");
        let systemd = format!(
            "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{low}.slice/cri-containerd-{id}.scope"
        );
        let both = (pod.to_owned(), "3f2a9c0d1e4b".to_owned());
        assert_eq!(pod_and_container(&systemd), both);
        assert_eq!(pod_and_container(&format!("/kubepods/burstable/pod{pod}/{id}")), both);
        let alone = (String::new(), "3f2a9c0d1e4b".to_owned());
        for path in [format!("/system.slice/docker-{id}.scope"), format!("/machine.slice/libpod-{id}.scope")]
        {
            assert_eq!(pod_and_container(&path), alone, "{path}");
        }
        for path in
            ["/", "/system.slice/postgresql@16-main.service", "/user.slice/user-1000.slice/tripod.scope"]
        {
            assert_eq!(pod_and_container(path), Default::default(), "{path}");
        }
    }
}
