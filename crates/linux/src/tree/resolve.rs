//! Resolution of symbolic links inside a tree, without leaving it.

use super::absence::{Absence, Answer};

/// Maximum number of links followed, the kernel's limit: MAXSYMLINKS, include/linux/namei.h.
const LINKS_MAX: usize = 40;

/// Returns `path` without links, `.` and `..`, calling `link` at every step. `..` at the root stays there, so
/// nothing leads out of the tree. The last component need not exist.
///
/// # Errors
/// [`Absence::Failed`] with ELOOP after 40 links.
pub(super) fn resolve(path: &str, link: impl Fn(&str) -> Answer<String>) -> Answer<String> {
    let mut pending: Vec<String> = parts(path);
    let mut resolved = String::with_capacity(path.len());
    let mut followed = 0;
    while let Some(part) = pending.pop() {
        if part == ".." {
            resolved.truncate(resolved.rfind('/').unwrap_or(0));
            continue;
        }
        let parent = resolved.len();
        resolved.push('/');
        resolved.push_str(&part);
        // Not a link, or an unreadable one: use the component itself.
        let Ok(target) = link(&resolved) else { continue };
        followed += 1;
        if followed > LINKS_MAX {
            return Err(Absence::Failed(plumb_block::Errno(libc::ELOOP)));
        }
        resolved.truncate(if target.starts_with('/') { 0 } else { parent });
        pending.extend(parts(&target));
    }
    if resolved.is_empty() {
        resolved.push('/');
    }
    Ok(resolved)
}

/// Returns the components of `path`, without empty ones and `.`, the last first.
fn parts(path: &str) -> Vec<String> {
    path.split('/').rev().filter(|part| !part.is_empty() && *part != ".").map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(path: &str) -> Answer<String> {
        match path {
            "/sys/block/vda" => Ok("../devices/pci/vda".into()),
            "/dev/root" => Ok("/dev/vda".into()),
            "/loop" => Ok("loop/more".into()),
            "/up" => Ok("../../..".into()),
            _ => Err(Absence::NotThere),
        }
    }

    #[test]
    fn links_are_followed_and_never_lead_out() {
        assert_eq!(resolve("/sys/block/vda/size", links).unwrap(), "/sys/devices/pci/vda/size");
        assert_eq!(resolve("/dev//./root", links).unwrap(), "/dev/vda");
        assert_eq!(resolve("/a/../../b/", links).unwrap(), "/b");
        assert_eq!(resolve("/up", links).unwrap(), "/");
        assert_eq!(resolve("/", links).unwrap(), "/");
        assert!(matches!(resolve("/loop", links), Err(Absence::Failed(_))));
    }
}
