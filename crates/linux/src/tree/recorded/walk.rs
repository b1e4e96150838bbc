//! Following links through recorded nodes, one step for each part of the path.

use plumb_block::Errno;

use super::node::{Content, Node};
use crate::tree::resolve::{LINKS_MAX, parts};
use crate::tree::{Absence, Answer};

/// Where a path ends.
pub(super) struct Place<'a> {
    /// The path without links, `.` and `..`.
    pub(super) path: String,
    /// What is there; `None` if nothing is known of it.
    pub(super) node: Option<&'a Node>,
}

/// Follows `path` from `root`, as [`resolve`](crate::tree::resolve::resolve) does by asking.
///
/// # Errors
/// [`Absence::Failed`] with ELOOP after 40 links.
pub(super) fn walk<'a>(root: &'a Node, path: &str) -> Answer<Place<'a>> {
    let mut pending = parts(path);
    let mut resolved = String::with_capacity(path.len());
    // The nodes on the way, the root first.
    let mut way: Vec<Option<&Node>> = vec![Some(root)];
    let mut followed = 0;
    while let Some(part) = pending.pop() {
        if part == ".." {
            resolved.truncate(resolved.rfind('/').unwrap_or(0));
            way.truncate(way.len().saturating_sub(1).max(1));
            continue;
        }
        let found = way.last().copied().flatten().and_then(|node| node.child(&part));
        if let Some(Content::Link(target)) = found.map(Node::content) {
            followed += 1;
            if followed > LINKS_MAX {
                return Err(Absence::Failed(Errno(libc::ELOOP)));
            }
            if target.starts_with('/') {
                resolved.clear();
                way.truncate(1);
            }
            pending.extend(parts(target));
            continue;
        }
        resolved.push('/');
        resolved.push_str(&part);
        way.push(found);
    }
    if resolved.is_empty() {
        resolved.push('/');
    }
    Ok(Place { path: resolved, node: way.last().copied().flatten() })
}
