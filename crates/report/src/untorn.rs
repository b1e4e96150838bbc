//! Sentences about untorn writes: which protection against torn pages a database can do without, by page
//! size, the layer responsible, and how to prove it.

use plumb_path::{PageAnswer, UntornPage, UntornRank, WritePath};

use crate::quantity::bytes;

/// Returns the results for `path`, with page sizes of equal result grouped: first for direct writes with
/// `RWF_ATOMIC`, as InnoDB could use them, then for writes through the page cache, as PostgreSQL uses them.
/// Empty if no layer reports anything.
pub(crate) fn lines(path: &WritePath) -> Vec<String> {
    let direct = grouped(&path.untorn, |one, other| {
        (one.answer, &one.because, one.rank) == (other.answer, &other.because, other.rank)
    });
    let cached = grouped(&path.untorn, |one, other| one.cached == other.cached);
    direct.into_iter().map(direct_line).chain(cached.into_iter().map(cached_line)).collect()
}

/// Groups adjacent page sizes that are `alike`.
fn grouped(pages: &[UntornPage], alike: fn(&UntornPage, &UntornPage) -> bool) -> Vec<&[UntornPage]> {
    pages.chunk_by(alike).collect()
}

/// Returns `16 KiB`; `4 to 64 KiB`.
fn sizes(pages: &[UntornPage]) -> String {
    let size = |page: &UntornPage| bytes(page.page_bytes as f64);
    match pages {
        [] => String::new(),
        [one] => size(one),
        [first, .., last] => {
            let first = size(first);
            format!("{} to {}", first.trim_end_matches(" KiB"), size(last))
        }
    }
}

fn direct_line(pages: &[UntornPage]) -> String {
    let sizes = sizes(pages);
    let Some(page) = pages.first() else { return sizes };
    let because = &page.because;
    let proof = page.proof.as_deref().unwrap_or_default();
    match (page.answer, page.rank) {
        (PageAnswer::Yes, Some(UntornRank::Declared) | None) => format!(
            "Pages of {sizes}: the InnoDB doublewrite may be off if the server writes with RWF_ATOMIC: {because}. That is declared, not proved; proof: {proof}."
        ),
        (PageAnswer::Yes, Some(UntornRank::ByDesign)) => {
            let condition = if page.needs_rwf_atomic { " if the server writes with RWF_ATOMIC" } else { "" };
            format!(
                "Pages of {sizes}: the InnoDB doublewrite may be off{condition}: {because}. That is how the file system works; proof: {proof}."
            )
        }
        (PageAnswer::No, _) => format!("Pages of {sizes}: the InnoDB doublewrite must stay on: {because}."),
        (PageAnswer::Unknown, _) => format!(
            "Pages of {sizes}: not known whether the InnoDB doublewrite may be off: {because}. To learn more, {proof}."
        ),
    }
}

fn cached_line(pages: &[UntornPage]) -> String {
    let sizes = sizes(pages);
    let Some(cached) = pages.first().map(|page| &page.cached) else { return sizes };
    if cached.layer.is_none() {
        return format!("Pages of {sizes} without RWF_ATOMIC: nothing keeps them whole.");
    }
    let answer = match cached.answer {
        PageAnswer::Yes => "full_page_writes of PostgreSQL may be off",
        PageAnswer::Unknown => "not known whether full_page_writes of PostgreSQL may be off",
        PageAnswer::No => "full_page_writes of PostgreSQL must stay on",
    };
    let because = if cached.because.is_empty() { String::new() } else { format!(": {}", cached.because) };
    format!("Pages of {sizes} through the page cache: {answer}{because}.")
}

#[cfg(test)]
mod tests {
    use plumb_path::{CachedPage, PAGE_SIZES};

    use super::*;

    fn page(page_bytes: u64, answer: PageAnswer, rank: Option<UntornRank>, because: &str) -> UntornPage {
        UntornPage {
            page_bytes,
            answer,
            layer: Some("nvme0n1".to_owned()),
            because: because.to_owned(),
            rank,
            needs_rwf_atomic: rank == Some(UntornRank::Declared),
            proof: rank.map(|_| "power cuts".to_owned()),
            cached: CachedPage {
                answer: PageAnswer::No,
                layer: Some("page cache".to_owned()),
                because: "it may write a page back in parts".to_owned(),
            },
        }
    }

    #[test]
    fn sizes_with_one_answer_stand_together() {
        let of = |bytes: &u64| match *bytes <= 16 << 10 {
            true => page(*bytes, PageAnswer::Yes, Some(UntornRank::Declared), "nvme0n1 declares it"),
            false => page(*bytes, PageAnswer::No, None, "nvme0n1 takes untorn writes of 16 KiB at most"),
        };
        let path = WritePath { untorn: PAGE_SIZES.iter().map(of).collect(), ..WritePath::default() };
        let said = lines(&path);
        assert_eq!(said.len(), 3, "{said:#?}");
        assert!(
            said[0].starts_with("Pages of 4 to 16 KiB: the InnoDB doublewrite may be off if"),
            "{}",
            said[0]
        );
        assert!(said[0].contains("declared, not proved; proof: power cuts"), "{}", said[0]);
        assert!(
            said[1].starts_with("Pages of 32 to 64 KiB: the InnoDB doublewrite must stay on"),
            "{}",
            said[1]
        );
        assert!(said[2].contains("full_page_writes of PostgreSQL must stay on"), "{}", said[2]);
        assert!(lines(&WritePath::default()).is_empty());
    }

    #[test]
    fn a_copy_that_only_some_writes_get_is_said_with_its_condition() {
        let said = |needs_rwf_atomic: bool| {
            let page = page(16 << 10, PageAnswer::Yes, Some(UntornRank::ByDesign), "it copies");
            direct_line(&[UntornPage { needs_rwf_atomic, ..page }])
        };
        let condition = "may be off if the server writes with RWF_ATOMIC";
        assert!(said(true).contains(condition), "XFS");
        assert!(!said(false).contains(condition), "ZFS");
    }
}
