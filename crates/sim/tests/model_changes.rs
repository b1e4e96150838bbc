//! Tests of parameters that are typed behind the name of a model.

use plumb_sim::model::{Change, Model, TypedModel};

/// Tests that a typed parameter is checked like one in a file, and that the error names the change.
#[test]
fn changed_parameters_are_checked_as_those_of_a_file() {
    let resolved = |typed: &str| typed.parse::<TypedModel>().unwrap().resolve();
    let changed = resolved("ata-40gb?behaviour.driver_drops_flush=true&cache.write.size=1 MiB").unwrap();
    assert!(changed.behaviour.driver_drops_flush);
    let size = changed.figures.iter().find(|figure| figure.path == "cache.write.size").unwrap();
    assert_eq!((size.value.as_str(), size.source.as_deref()), ("1 MiB", Some("as asked for")));
    assert_eq!(changed.figures.len(), Model::named("ata-40gb").unwrap().figures.len() + 1);
    let again = changed.with(&[Change { path: "behaviour.wce".into(), value: "off".into() }]).unwrap();
    assert!(again.behaviour.driver_drops_flush && !again.wce(), "changes add up");
    for (typed, told) in [
        ("ata-40gb?behaviour.driver_drops_flush=maybe", "behaviour.driver_drops_flush = maybe"),
        ("ata-40gb?behavior.wce=off", "`behaviour` was probably meant"),
        ("ata-40gb?cache.write.sizes=1", "`size` was probably meant"),
        ("ata-40gb?cache.write=1", "it is a table"),
        ("ata-40gb?cache.write.size=9TiB", "cache.write.size = 9TiB: expected 64 KiB to 4 GiB"),
        ("ata-40gb?name.x=1", "no such field"),
        ("ata-40gb?behaviour.=1", "no such field"),
        ("ata-40gb?behaviour.wce=off&behaviour.wce=perhaps", "behaviour.wce"),
    ] {
        let error = resolved(typed).unwrap_err().to_string();
        assert!(error.contains(told) && error.contains("with a change"), "{typed}: {error}");
    }
}

#[test]
fn published_figures_are_figures() {
    for value in ["nan", "inf", "0.0", "-1.0"] {
        let typed: TypedModel =
            format!("nearline-4tb?mechanics.published.depth_gain={value}").parse().unwrap();
        let error = typed.resolve().unwrap_err().to_string();
        assert!(error.contains("mechanics.published.depth_gain"), "{error}");
    }
}
