//! Tests of the calls of each profile, and of its description.

mod blocks;
mod calls;

use super::*;
use crate::profile::Work;

#[test]
fn every_profile_says_what_it_is() {
    let mut names = std::collections::HashSet::new();
    for profile in profiles() {
        let name = &*profile.name;
        assert!(names.insert(name), "{name} comes twice");
        assert!(!profile.variants.is_empty(), "{name}");
        for text in [&profile.summary, &profile.pattern, &profile.source, &profile.leaves_out] {
            assert!(text.len() > 20 && !text.contains("  "), "{name}: {text:?}");
        }
        let explained = crate::explain(profile);
        for part in [name, &profile.pattern, profile.provenance.name(), &profile.source, &profile.leaves_out]
        {
            assert!(explained.contains(part), "{name}: {explained}");
        }
        for variant in &profile.variants {
            assert!(explained.contains(&format!("{name}:{}", variant.name)), "{explained}");
            let (found, its_variant) = find(&format!("{name}:{}", variant.name)).unwrap();
            assert_eq!((&*found.name, its_variant), (name, variant));
        }
        assert_eq!(find(name).unwrap().1, &profile.variants[0], "{name}");
        for criterion in &profile.criteria {
            assert!(explained.contains(&criterion.in_words()), "{explained}");
        }
        assert!(explained.contains("stimated"), "{name} says what is estimated");
        if profile.needs_directory() {
            assert!(!matches!(profile.work, Work::Blocks(_)));
        }
    }
    assert_eq!(names.len(), 18);
}

#[test]
fn what_there_is_not_is_named_with_what_there_is() {
    let unknown = find("nfs").unwrap_err().to_string();
    assert!(unknown.contains("`nfs`") && unknown.contains("varmail, fileserver"), "{unknown}");
    assert!(!unknown.contains("WinBench"));
    let variant = find("save:twice").unwrap_err().to_string();
    assert!(variant.contains("`twice`") && variant.contains("rename, directory-fsync"), "{variant}");
    let winbench = find("WinBench99").unwrap_err().to_string();
    assert!(winbench.contains("no profile reproduces its score"), "{winbench}");
}
