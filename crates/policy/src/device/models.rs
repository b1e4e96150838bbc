//! List of models whose cache survives a power cut according to the manufacturer: the built-in `models.toml`.

use std::sync::OnceLock;

use serde::Deserialize;

/// An entry of the list.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// Prefixes of the model names; `?` stands for any character.
    pub models: Vec<String>,
    /// Description of the model and its protection.
    pub what: String,
    /// Source of the claim.
    pub source: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    model: Vec<Model>,
}

/// Returns the entry for a drive with this model name.
pub fn find(model: &str) -> Option<&'static Model> {
    static LIST: OnceLock<Vec<Model>> = OnceLock::new();
    let list = LIST.get_or_init(|| {
        let list = include_str!("models.toml").parse().and_then(toml::Table::try_into);
        let list: List = list.expect("models.toml is checked by a test");
        list.model
    });
    list.iter().find(|entry| entry.models.iter().any(|start| starts_with(model, start)))
}

fn starts_with(model: &str, start: &str) -> bool {
    let mut given = model.chars();
    start.chars().all(|wanted| given.next().is_some_and(|given| wanted == '?' || wanted == given))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_has_a_source_and_is_found() {
        let list: List = toml::from_str(include_str!("models.toml")).unwrap();
        assert!(list.model.len() >= 15);
        for entry in &list.model {
            assert!(entry.source.len() > 20, "{entry:?}");
            for start in &entry.models {
                assert!(start.len() >= 12, "{entry:?}");
                assert_eq!(find(&format!("{start}480G7")), Some(entry));
            }
        }
    }

    /// Tests models as drives report them, some cut to 16 characters as by the kernel.
    #[test]
    fn relatives_are_told_apart() {
        for (model, series) in [
            ("INTEL SSDSC2BB48", "S3510"),
            ("INTEL SSDSC2BA40", "S3710"),
            ("INTEL SSDPEDMW400G4", "750"),
            ("INTEL SSDPE2ME016T4", "P3600"),
            ("INTEL SSDPEDMD016T4", "P3700"),
            ("INTEL SSDPE2MX020T4", "P3500"),
            ("INTEL SSDPECME040T4", "P3608"),
            ("MTFDHAL3T2MCE-1AN1ZABYY", "9100"),
            ("Micron_7450_MTFDKCC3T8TFR", "7450"),
            ("SAMSUNG MZ7LM480", "PM863"),
            ("Samsung SSD 845D", "845DC"),
        ] {
            assert!(find(model).is_some_and(|entry| entry.what.contains(series)), "{model}");
        }
        for model in [
            "",
            "QEMU HARDDISK",
            "INTEL SSDSC2BW48",
            "INTEL SSDSC2KW51",
            "INTEL SSDPE2MX450G7",
            "INTEL SSDPEKKW010T7",
            "Micron_1100_SATA_",
            "Micron_1300_MTFD",
            "Micron_2300_NVMe_1024GB",
            "SAMSUNG MZ7LN256",
            "SAMSUNG MZ7TE256",
            "SAMSUNG MZVLB512HAJQ-00000",
            "Samsung SSD 840 ",
            "Samsung SSD 860 ",
            "Samsung SSD 970 PRO 512GB",
            "KINGSTON SEDC450R",
            "WDC WDS100T1B0A-",
        ] {
            assert_eq!(find(model), None, "{model}");
        }
    }
}
