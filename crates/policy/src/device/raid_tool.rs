//! Parser for reports of RAID manufacturers' programs: storcli and perccli (`/cALL show all J`), and ssacli
//! with JSON output. plumb never starts these programs, and changes no logical disk.
//!
//! Typed and free of panics; unknown parts are ignored. Limitation: the names of fields differ between
//! versions of the programs, and newer programs (storcli2) use others.

use serde::Serialize;
use serde_json::Value;

/// Maximum depth, larger than in any program's output.
const DEPTH_MAX: usize = 16;

/// Report of a program.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RaidReport {
    /// Volumes in the report.
    pub volumes: Vec<Volume>,
    /// Batteries and capacitors with their reported state.
    pub backups: Vec<Backup>,
}

impl RaidReport {
    /// Returns true if a power cut may lose acknowledged data of a volume, according to the controller.
    pub fn is_at_risk(&self, volume: &Volume) -> bool {
        match volume.write_policy {
            WritePolicy::AlwaysWriteBack => !self.backups.iter().any(|backup| backup.good),
            // An honest controller falls back to write-through by itself.
            WritePolicy::WriteBack | WritePolicy::WriteThrough | WritePolicy::Unknown => false,
        }
    }
}

/// A logical disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Volume {
    /// Name of the volume, as the program prints it: `0/1`.
    pub name: String,
    /// RAID level and state, as printed.
    pub level: String,
    /// Write policy of the controller.
    pub write_policy: WritePolicy,
    /// Caches of the disks behind the volume, as printed: `Disk's Default`, `Disabled`.
    pub disk_cache: Option<String>,
}

/// Write policy of a controller for a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WritePolicy {
    /// Acknowledged once on the disks (WT).
    WriteThrough,
    /// Acknowledged in the controller's memory while its battery or capacitor is good (WB).
    WriteBack,
    /// Acknowledged in the controller's memory even without one (AWB, FWB): lost in a power cut.
    AlwaysWriteBack,
    /// Not reported, or unknown.
    Unknown,
}

/// A battery or a capacitor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Backup {
    /// Model of the battery or capacitor, as printed.
    pub model: String,
    /// State of the battery or capacitor, as printed.
    pub state: String,
    /// True if the battery or capacitor protects data in this state.
    pub good: bool,
}

/// Error of text that is not a report of a RAID program.
#[derive(Debug, thiserror::Error)]
pub enum RaidToolError {
    /// The answer is not JSON.
    #[error("the answer of the RAID program is not JSON: ask it with J (storcli, perccli)")]
    Json(#[from] serde_json::Error),
    /// The JSON contains no volume and no battery.
    #[error("the answer of the RAID program names no volume and no battery: ask it with `/cALL show all J`")]
    Empty,
}

/// Parses the output of storcli, perccli or ssacli.
///
/// # Errors
/// [`RaidToolError`].
pub fn parse(text: &str) -> Result<RaidReport, RaidToolError> {
    let document: Value = serde_json::from_slice(text.as_bytes())?;
    let mut report = RaidReport::default();
    walk(&document, "", 0, &mut report);
    if report == RaidReport::default() { Err(RaidToolError::Empty) } else { Ok(report) }
}

fn walk(value: &Value, key: &str, depth: usize, report: &mut RaidReport) {
    if depth > DEPTH_MAX {
        return;
    }
    match value {
        Value::Array(items) => {
            for item in items {
                walk(item, key, depth + 1, report);
            }
        }
        Value::Object(fields) => {
            let text = |name: &str| fields.get(name).and_then(Value::as_str);
            if let Some(name) = text("DG/VD") {
                report.volumes.push(Volume {
                    name: name.to_owned(),
                    level: [text("TYPE"), text("State")].into_iter().flatten().collect::<Vec<_>>().join(" "),
                    write_policy: text("Cache").map_or(WritePolicy::Unknown, storcli_policy),
                    disk_cache: None,
                });
            }
            if let (Some(policy), Some(volume)) = (text("Disk Cache Policy"), report.volumes.last_mut()) {
                volume.disk_cache = Some(policy.to_owned());
            }
            if matches!(key, "Cachevault_Info" | "BBU_Info")
                && let (Some(model), Some(state)) = (text("Model"), text("State"))
            {
                report.backups.push(backup(model, state));
            }
            if let Some(state) = text("Battery/Capacitor Status") {
                report.backups.push(backup("battery or capacitor", state));
            }
            if let (Some(name), Some(caching)) = (text("Logical Drive"), text("Caching")) {
                report.volumes.push(Volume {
                    name: name.to_owned(),
                    level: text("Fault Tolerance").unwrap_or_default().to_owned(),
                    write_policy: match caching {
                        "Enabled" => WritePolicy::WriteBack,
                        "Disabled" => WritePolicy::WriteThrough,
                        _ => WritePolicy::Unknown,
                    },
                    disk_cache: text("Drive Write Cache").map(str::to_owned),
                });
            }
            for (name, field) in fields {
                walk(field, name, depth + 1, report);
            }
        }
        _ => {}
    }
}

/// Parses a combination like `NRWBD`: read ahead (R, NR), write policy (WT, WB, AWB, FWB), I/O policy (D, C).
fn storcli_policy(cache: &str) -> WritePolicy {
    let rest = cache.strip_prefix("NR").or_else(|| cache.strip_prefix('R')).unwrap_or(cache);
    match rest {
        _ if rest.starts_with("AWB") || rest.starts_with("FWB") => WritePolicy::AlwaysWriteBack,
        _ if rest.starts_with("WB") => WritePolicy::WriteBack,
        _ if rest.starts_with("WT") => WritePolicy::WriteThrough,
        _ => WritePolicy::Unknown,
    }
}

fn backup(model: &str, state: &str) -> Backup {
    let good = matches!(state.to_ascii_lowercase().as_str(), "optimal" | "ok" | "optl");
    Backup { model: model.to_owned(), state: state.to_owned(), good }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STORCLI: &str = r#"{"Controllers":[{"Command Status":{"Status":"Success"},"Response Data":{
        "VD LIST":[{"DG/VD":"0/0","TYPE":"RAID1","State":"Optl","Cache":"NRWTD"},
                   {"DG/VD":"1/1","TYPE":"RAID6","State":"Dgrd","Cache":"RAWBD"},
                   {"DG/VD":"2/2","TYPE":"RAID0","State":"Optl","Cache":"RWBC"}],
        "VD2 Properties":{"Disk Cache Policy":"Disk's Default"},
        "Cachevault_Info":[{"Model":"CVPM02","State":"Optimal"}],
        "BBU_Info":[{"Model":"BBU","State":"Failed"}]}}]}"#;

    #[test]
    fn the_policies_of_storcli_are_told_apart() {
        let report = parse(STORCLI).unwrap();
        let mut policies: Vec<_> =
            report.volumes.iter().map(|volume| (volume.name.as_str(), volume.write_policy)).collect();
        policies.sort_by_key(|(name, _)| *name);
        assert_eq!(
            policies,
            [
                ("0/0", WritePolicy::WriteThrough),
                ("1/1", WritePolicy::AlwaysWriteBack),
                ("2/2", WritePolicy::WriteBack)
            ]
        );
        let good: Vec<bool> = report.backups.iter().map(|backup| backup.good).collect();
        assert!(good.contains(&true) && good.contains(&false));
    }

    #[test]
    fn ssacli_is_read_and_what_says_nothing_is_refused() {
        let text = r#"{"Smart Array":[{"Battery/Capacitor Status":"OK",
            "Logical":{"Logical Drive":"1","Fault Tolerance":"1","Caching":"Enabled","Drive Write Cache":"Disabled"}}]}"#;
        let report = parse(text).unwrap();
        assert_eq!(report.volumes[0].write_policy, WritePolicy::WriteBack);
        assert_eq!(report.volumes[0].disk_cache.as_deref(), Some("Disabled"));
        assert!(report.backups[0].good);
        assert!(matches!(parse("Controller = 0"), Err(RaidToolError::Json(_))));
        assert!(matches!(parse("{\"a\":[1,null,{}]}"), Err(RaidToolError::Empty)));
    }

    #[test]
    fn damaged_answers_are_taken_without_panic() {
        for end in 0..STORCLI.len() {
            if let Some(part) = STORCLI.get(..end) {
                assert!(parse(part).is_err(), "{end}");
            }
        }
    }
}
