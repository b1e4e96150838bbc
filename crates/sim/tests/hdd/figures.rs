//! Tests that the figures of every shipped disk are within 10 % of the published ones.

use plumb_sim::figures::hdd::table;
use plumb_sim::model::Model;

use crate::hdd::shipped::NAMES;

#[test]
fn what_is_published_is_met() {
    for (name, seed) in NAMES.into_iter().flat_map(|name| [1, 7].map(|seed| (name, seed))) {
        let table = table(&Model::named(name).unwrap(), seed).unwrap();
        println!("{name}: {table:?}");
        for row in &table {
            if let Some(deviation) = row.deviation {
                assert!(
                    (-0.1..=0.1).contains(&deviation),
                    "{name}: {} is off by {:.1} %",
                    row.name,
                    deviation * 100.0
                );
            }
        }
        let compared = table.iter().filter(|row| row.published.is_some());
        assert!(compared.clone().count() >= 4, "{name}");
        assert!(compared.clone().all(|row| row.source.is_some()), "{name}: a figure without its source");
    }
}
