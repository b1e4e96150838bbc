//! The figures of every shipped disk are within 10 % of what is published, and within a factor of 1.5 of a field report.

use plumb_sim::figures::hdd::table;
use plumb_sim::model::Model;

use crate::hdd::shipped::NAMES;

#[test]
fn what_is_published_is_met() {
    for (name, seed) in NAMES.into_iter().flat_map(|name| [1, 7].map(|seed| (name, seed))) {
        let table = table(&Model::named(name).unwrap(), seed).unwrap();
        println!("{name}\n{table}");
        for row in &table.rows {
            if let Some(deviation) = row.deviation() {
                let factor = if row.name.starts_with("object store") { 1.5 } else { 1.1 };
                let range = 0.9_f64.min(1.0 / factor) - 1.0..=factor - 1.0;
                assert!(
                    range.contains(&deviation),
                    "{name}: {} is off by {:.1} %",
                    row.name,
                    deviation * 100.0
                );
            }
        }
        let compared = table.rows.iter().filter(|row| row.published.is_some());
        assert!(compared.clone().count() >= 4, "{name}");
        assert!(compared.clone().all(|row| row.source.is_some()), "{name}: a figure without its source");
    }
}
