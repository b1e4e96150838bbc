//! What changes the log of a cache: a device that is replaced, and more room; while it is served and while it is not, and
//! everything that was written is there afterwards.

use serde_json::Value;

use crate::cache_support::Place;
use crate::common::{document, said};
use crate::drive_documents::matches_schema;

fn load(place: &Place, uri: &str, arguments: &[&str]) {
    let common = ["load", uri, "--overwrite", "--json", "--no-record", "--seed", "5", "--bytes", "8M"];
    let output = place.plumb().args(common).args(arguments).output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", said(&output));
    let verified = &document(&output)["targets"][0];
    assert_eq!(verified["read"]["errors"], 0, "{verified}");
}

fn states(status: &Value) -> Vec<&str> {
    status["legs"].as_array().unwrap().iter().map(|leg| leg["state"].as_str().unwrap()).collect()
}

#[test]
fn a_leg_is_replaced_and_the_log_grows_and_nothing_is_lost() {
    let place = Place::new(32 << 20);
    place.create(&["--log", "log2"]);
    let server = place.serve();
    load(&place, &server.uri(), &["--write", "100", "--random", "--verify"]);
    let name = &place.name;
    let replaced = place.cache(&["replace-leg", name, "--lost", "log2", "--log", "log3"]);
    matches_schema(&replaced, "cache-status");
    assert_eq!(states(&replaced), ["live", "live"]);
    assert!(replaced["legs"][1]["path"].as_str().unwrap().ends_with("log3"), "{replaced}");
    let before = replaced["log_size"].as_u64().unwrap();
    let grown = place.cache(&["grow", name, "--size", "96M"]);
    matches_schema(&grown, "cache-status");
    assert!(grown["log_size"].as_u64() >= Some(before + (24 << 20)), "{grown}");
    assert_eq!(grown["size"], 96 << 20);
    load(&place, &server.uri(), &["--write", "50", "--random", "--verify"]);
    let smaller = place.try_cache(&["grow", name, "--size", "32M"]);
    assert!(!smaller.status.success() && said(&smaller).contains("never made smaller"), "{}", said(&smaller));
    place.cache(&["stop", name]);
    assert_eq!(server.wait(), Some(0));
    // The first leg is gone: what only the second had time to be copied is all that there is.
    std::fs::remove_file(place.path("log")).unwrap();
    let replaced = place.cache(&["replace-leg", name, "--lost", "0", "--log", "log4"]);
    assert_eq!(states(&replaced), ["live", "live"]);
    let server = place.serve();
    load(&place, &server.uri(), &["--write", "0"]);
    place.cache(&["stop", name]);
    assert_eq!(server.wait(), Some(0));
    place.cache(&["detach", name]);
}
