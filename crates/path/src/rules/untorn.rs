//! Untorn writes: the page sizes that stay whole on a path across a power cut.
//!
//! There are two ways for a page to stay whole. Either every layer handles it as one piece: the file system
//! and the devices below pass it on as one request, which the kernel guarantees for direct writes with
//! `RWF_ATOMIC` within the reported limits, and the drive declares that it does not tear such a request. A
//! declaration is not proof. Or a file system writes the page elsewhere and then switches to it. Then it only
//! matters that the layers below pass flushes on: otherwise the switch may survive without the page.

use super::Flow;
use super::durable::below_all;
use super::finding::{RuleResult, Those};
use crate::facts::{Mark, Node, Units, Untorn};
use crate::finding::Severity;
use crate::model::{CachedPage, Flush, LayerKind, LayerUntorn, PageAnswer, UntornPage, UntornRank};

/// Database page sizes to report, in bytes: 4 KiB (SQLite, smallest of MySQL), 8 KiB (PostgreSQL, SQL
/// Server), 16 KiB (InnoDB), 32 and 64 KiB (largest of PostgreSQL and InnoDB).
pub const PAGE_SIZES: [u64; 5] = [4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10];

/// Proof for a claim by a drive.
const PROOF_OF_DRIVE: &str = "power cuts while pages are overwritten, each page checked afterwards";
/// Proof for a claim based on the design of a file system.
const PROOF_OF_FILE_SYSTEM: &str = "power cuts of a simulated drive under this file system (`plumb prove app`), each page checked afterwards";
/// Way to learn more if the limits depend on the file.
const PROOF_OF_DIRECTORY: &str = "name a file of the database in place of its directory, as root";
/// Way to learn more in other cases.
const PROOF_OF_UNKNOWN: &str =
    "cut the power while pages are overwritten, and check each page afterwards (`plumb prove writer`)";
/// Reason why no page stays whole in the page cache.
const PAGE_CACHE: &str = "the page cache may write a page back in parts";

/// Verdict of one layer about one page size.
enum Verdict {
    /// The page stays whole here if it does below.
    Whole,
    /// The page is written elsewhere and switched to, so it stays whole if flushes are passed on.
    Replaced,
    /// The kernel accepts the page for this file, with `by_copy` if the devices do not.
    Promised {
        by_copy: bool,
    },
    /// The layer has no effect.
    Silent,
    Torn(String),
    Unknown(String),
}

/// Returns the answers for all [`PAGE_SIZES`]; none if the path ends above every layer with an effect.
pub(super) fn pages(flow: &Flow<'_>) -> Vec<UntornPage> {
    let has_say = |(_, node): (usize, &Node)| node.untorn != Untorn::Passes;
    match flow.nodes().any(has_say) {
        true => PAGE_SIZES.iter().map(|page| answer(flow, *page)).collect(),
        false => Vec::new(),
    }
}

/// Returns the limits that a layer itself reports; `None` if it has no effect.
pub(super) fn of_layer(node: &Node) -> Option<LayerUntorn> {
    let unknown = |why: &str| LayerUntorn {
        bytes_min: None,
        bytes_max: None,
        bytes_unknown_because: Some(why.to_owned()),
    };
    let known =
        |min, max| LayerUntorn { bytes_min: Some(min), bytes_max: Some(max), bytes_unknown_because: None };
    match &node.untorn {
        _ if node.kind == LayerKind::PageCache => Some(known(0, 0)),
        Untorn::Passes => None,
        Untorn::Torn { .. } => Some(known(0, 0)),
        Untorn::Units(units) | Untorn::File { units, .. } => Some(known(units.min, units.max)),
        Untorn::CopyOnWrite { block } => Some(known(0, *block)),
        Untorn::Directory { least: Some(least), most: Some(most), .. } => Some(known(*least, *most)),
        Untorn::Directory { why, .. } | Untorn::Unknown { why, .. } => Some(unknown(why)),
    }
}

/// Judges `untorn-lost-above`: a drive declares larger untorn writes than can reach it from the top of the
/// path.
pub(super) fn lost_above(flow: &Flow<'_>) -> Option<RuleResult> {
    let declares = |node: &Node| {
        node.marks.iter().find_map(|mark| match mark {
            Mark::DeclaresUntorn { units } => Some(*units),
            _ => None,
        })
    };
    let largest = |node: &Node| {
        let units = declares(node)?;
        PAGE_SIZES.into_iter().filter(|page| units.takes(*page)).max()
    };
    let drives = Those::matching(flow, |_, node| largest(node).is_some());
    let page = drives.nodes.iter().filter_map(|node| largest(node)).min()?;
    let answer = answer(flow, page);
    if answer.answer != PageAnswer::No {
        return None;
    }
    drives.found(
        Severity::Info,
        format!(
            "{drives} {} that writes of {} are not torn, but they are not passed on as one: {}",
            drives.verb("declares", "declare"),
            kib(page),
            answer.because
        ),
    )
}

/// Summary of a path's layers for one page size.
#[derive(Default)]
struct Account<'a> {
    /// File system that replaces the page.
    replaced: Option<&'a Node>,
    /// File system for whose file the kernel accepts the page, and whether by a copy.
    promised: Option<(&'a Node, bool)>,
    /// Lowest layer that accepts the page as untorn.
    declared: Option<&'a Node>,
    /// Lowest layer that tears the page, from which the layers above follow.
    torn: Option<(&'a Node, String)>,
    /// First layer whose effect is unknown.
    unknown: Option<(&'a Node, String)>,
}

impl<'a> Account<'a> {
    fn new(flow: &Flow<'a>, page: u64) -> Self {
        let mut account = Self::default();
        for (_, node) in flow.nodes().filter(|(_, node)| node.kind != LayerKind::PageCache) {
            let is_open = account.torn.is_none() && account.unknown.is_none();
            match judge(node, page) {
                Verdict::Silent => {}
                Verdict::Whole => account.declared = Some(node),
                Verdict::Replaced => account.replaced = Some(node).filter(|_| is_open),
                Verdict::Promised { by_copy } => account.promised = Some((node, by_copy)).filter(|_| is_open),
                Verdict::Torn(why) => account.torn = Some((node, why)),
                Verdict::Unknown(why) => account.unknown = account.unknown.or(Some((node, why))),
            }
            // Layers below a file system that replaces blocks do not change the answer.
            if decides(node) {
                break;
            }
        }
        account
    }
}

/// Returns true if the node alone decides: its handling of a page does not depend on layers below, or cannot
/// be determined from them.
fn decides(node: &Node) -> bool {
    matches!(node.untorn, Untorn::CopyOnWrite { .. } | Untorn::Directory { by_copy: true, most: None, .. })
        || node.kind == LayerKind::Zfs
}

fn answer(flow: &Flow<'_>, page: u64) -> UntornPage {
    let answered = |answer, node: Option<&Node>, because: String, rank, proof: Option<&str>| UntornPage {
        page_bytes: page,
        answer,
        layer: node.map(|node| node.name.clone()),
        because,
        rank,
        needs_rwf_atomic: false,
        proof: proof.map(str::to_owned),
        cached: cached(flow, page),
    };
    let by_design = |node: &Node, because: String| match not_ordered(flow, node) {
        Some(NotOrdered { answer, layer, because }) => {
            let proof = (answer == PageAnswer::Unknown).then_some(PROOF_OF_UNKNOWN);
            answered(answer, Some(layer), because, None, proof)
        }
        None => {
            let rank = Some(UntornRank::ByDesign);
            answered(PageAnswer::Yes, Some(node), because, rank, Some(PROOF_OF_FILE_SYSTEM))
        }
    };
    let with_rwf_atomic =
        |page: UntornPage| UntornPage { needs_rwf_atomic: page.answer == PageAnswer::Yes, ..page };
    let replaced = |node: &Node| format!("{} writes a page elsewhere and then switches to it", node.place());
    let copied = |node: &Node| {
        format!("{} copies a page that is written so, and then switches to the copy", node.place())
    };
    let declared = |node: &Node| {
        let because = format!("{} declares it, and every layer above passes it on as one", node.name);
        let rank = Some(UntornRank::Declared);
        with_rwf_atomic(answered(PageAnswer::Yes, Some(node), because, rank, Some(PROOF_OF_DRIVE)))
    };
    let account = Account::new(flow, page);
    match (account.replaced, account.promised, account.torn, account.unknown) {
        (Some(node), ..) => by_design(node, replaced(node)),
        (_, Some((node, true)), torn, unknown) if torn.is_some() || unknown.is_some() => {
            with_rwf_atomic(by_design(node, copied(node)))
        }
        (_, Some((node, _)), ..) => declared(account.declared.unwrap_or(node)),
        (_, _, Some((node, why)), _) => answered(PageAnswer::No, Some(node), why, None, None),
        (_, _, None, Some((node, why))) => {
            let is_told_of_files = matches!(
                node.untorn,
                Untorn::Directory { .. } | Untorn::Unknown { is_told_of_files: true, .. }
            );
            let proof = if is_told_of_files { PROOF_OF_DIRECTORY } else { PROOF_OF_UNKNOWN };
            answered(PageAnswer::Unknown, Some(node), why, None, Some(proof))
        }
        (None, None, None, None) => match account.declared {
            Some(node) => declared(node),
            None => {
                let because = "no layer says how large a write may be".to_owned();
                answered(PageAnswer::Unknown, None, because, None, Some(PROOF_OF_UNKNOWN))
            }
        },
    }
}

/// Reason why a file system's switch to a new copy may survive a power cut without the copy.
struct NotOrdered<'a> {
    /// Either no or unknown.
    answer: PageAnswer,
    /// Layer that is the cause.
    layer: &'a Node,
    because: String,
}

/// Returns the reason why the switch of the file system `node` to a new copy may survive without the copy;
/// `None` if flushes reach everything below it.
fn not_ordered<'a>(flow: &Flow<'a>, node: &'a Node) -> Option<NotOrdered<'a>> {
    let (index, _) = flow.nodes().find(|(_, other)| other.name == node.name)?;
    let below = below_all(flow, index);
    let first = |fate| {
        flow.nodes().find(|(place, _)| below[*place] && flow.flush(*place) == fate).map(|(_, layer)| layer)
    };
    let place = node.place();
    if let Some(layer) = first(Flush::Dropped) {
        let because = format!(
            "{place} switches to a new copy of a page, but {} drops flushes: the copy may be lost and the switch kept",
            layer.name
        );
        return Some(NotOrdered { answer: PageAnswer::No, layer, because });
    }
    let parity = node.marks.iter().find_map(|mark| match mark {
        Mark::BtrfsParity { what } => Some(what),
        _ => None,
    });
    let (layer, because) = match (parity, first(Flush::Unknown)) {
        (Some(what), _) => (node, format!("{place} has {what}, whose parity a power cut may damage")),
        (None, Some(layer)) => {
            let because = format!(
                "{place} switches to a new copy of a page, which needs flushes, and what becomes of a flush at {} is \
                 not known",
                layer.name
            );
            (layer, because)
        }
        (None, None) => return None,
    };
    Some(NotOrdered { answer: PageAnswer::Unknown, layer, because })
}

/// Returns the answer for a program that writes through the page cache. Dirty data is written back in
/// arbitrary portions; a page stays whole only if the topmost file system replaces it as one block.
fn cached(flow: &Flow<'_>, page: u64) -> CachedPage {
    let cache = flow.nodes().map(|(_, node)| node).find(|node| node.kind == LayerKind::PageCache);
    let torn = CachedPage {
        answer: PageAnswer::No,
        layer: cache.map(|node| node.name.clone()),
        because: PAGE_CACHE.to_owned(),
    };
    let says = |node: &&Node| node.kind != LayerKind::PageCache && node.untorn != Untorn::Passes;
    let Some(first) = flow.nodes().map(|(_, node)| node).find(says) else { return torn };
    let answered =
        |answer, layer: &Node, because| CachedPage { answer, layer: Some(layer.name.clone()), because };
    match &first.untorn {
        Untorn::CopyOnWrite { block } if *block >= page => match not_ordered(flow, first) {
            Some(NotOrdered { answer, layer, because }) => answered(answer, layer, because),
            None => answered(PageAnswer::Yes, first, format!("{} replaces them as one", first.name)),
        },
        // Unknown whether the file system replaces the page.
        Untorn::Unknown { why, .. }
            if matches!(first.kind, LayerKind::Zfs | LayerKind::FileSystem | LayerKind::Unknown) =>
        {
            answered(PageAnswer::Unknown, first, why.clone())
        }
        _ => torn,
    }
}

fn judge(node: &Node, page: u64) -> Verdict {
    match &node.untorn {
        Untorn::Passes if node.log().is_some() => {
            Verdict::Torn(format!("{} keeps single blocks whole, not pages", node.name))
        }
        Untorn::Passes => Verdict::Silent,
        Untorn::Torn { why } => Verdict::Torn(why.clone()),
        Untorn::Unknown { why, .. } => Verdict::Unknown(why.clone()),
        Untorn::CopyOnWrite { block } if *block >= page => Verdict::Replaced,
        Untorn::CopyOnWrite { block } => Verdict::Torn(format!(
            "{} replaces {} at a time, so a page of {} may become durable in parts",
            node.place(),
            kib(*block),
            kib(page)
        )),
        Untorn::Units(units) if units.takes(page) => Verdict::Whole,
        Untorn::Units(units) => Verdict::Torn(short_of(&node.name, units, page)),
        Untorn::File { units, by_copy } if units.takes(page) => Verdict::Promised { by_copy: *by_copy },
        Untorn::File { units, .. } => Verdict::Torn(short_of(node.place(), units, page)),
        Untorn::Directory { least: Some(least), most: Some(most), .. } => {
            let units = Units { min: *least, max: *most, boundary: 0 };
            match units.takes(page) {
                true => Verdict::Promised { by_copy: true },
                false => Verdict::Torn(short_of(node.place(), &units, page)),
            }
        }
        Untorn::Directory { least: Some(least), .. } if *least == page => Verdict::Whole,
        Untorn::Directory { least: Some(least), .. } if *least > page => {
            Verdict::Torn(format!("{} writes blocks of {}", node.place(), kib(*least)))
        }
        Untorn::Directory { why, .. } => Verdict::Unknown(why.clone()),
    }
}

/// Explains why `units` do not allow a page.
fn short_of(name: &str, units: &Units, page: u64) -> String {
    match units.max {
        0 => format!("{name} takes no untorn writes"),
        max if max < page => format!("{name} takes untorn writes of {} at most", kib(max)),
        _ if page < units.min => format!("{name} takes untorn writes of {} at least", kib(units.min)),
        _ => format!("untorn writes to {name} may not cross boundaries of {}", kib(units.boundary)),
    }
}

/// Formats a size: `16 KiB`; `512 B`.
fn kib(bytes: u64) -> String {
    match bytes {
        0 => "0 B".to_owned(),
        bytes if bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
        bytes => format!("{bytes} B"),
    }
}
