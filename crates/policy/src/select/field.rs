//! Properties of a disk that can be used in an expression.

use plumb_text::nearest;

use super::role::{Role, roles};
use crate::view::DeviceView;

/// A property of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the words are the field's own")]
pub enum Field {
    Name,
    Identity,
    Serial,
    Model,
    Vendor,
    Transport,
    Port,
    Size,
    Rotational,
    Role,
    State,
}

/// Type of a field's value, which determines the possible comparisons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// Free text: `=`, `!=` and `~`.
    Text,
    /// One of a fixed set of words: `=` and `!=`.
    Words(&'static [&'static str]),
    /// A number of bytes: all but `~`.
    Size,
}

/// Names of each field, the preferred one first.
const NAMES: [(&[&str], Field); 11] = [
    (&["name"], Field::Name),
    (&["identity"], Field::Identity),
    (&["serial"], Field::Serial),
    (&["model"], Field::Model),
    (&["vendor"], Field::Vendor),
    (&["transport"], Field::Transport),
    (&["port", "host", "path"], Field::Port),
    (&["size"], Field::Size),
    (&["rotational"], Field::Rotational),
    (&["role"], Field::Role),
    (&["state"], Field::State),
];

/// Transports of disks, and words for other devices with a view.
const TRANSPORTS: [&str; 22] = [
    "ata",
    "sas",
    "scsi",
    "nvme",
    "nvme-fabrics",
    "usb",
    "virtio",
    "raid",
    "fc",
    "iscsi",
    "mmc",
    "xen",
    "pmem",
    "nbd",
    "rbd",
    "drbd",
    "loop",
    "zram",
    "md",
    "device-mapper",
    "bcache",
    "partition",
];

impl Field {
    /// Returns the field of this name, or a suggestion.
    pub(super) fn named(word: &str) -> Result<Self, String> {
        let plain = word.to_lowercase();
        if let Some((_, field)) = NAMES.iter().find(|(names, _)| names.contains(&plain.as_str())) {
            return Ok(*field);
        }
        let names: Vec<&str> = NAMES.iter().flat_map(|(names, _)| names.iter().copied()).collect();
        let meant = nearest(&plain, names.iter().copied())
            .map_or_else(String::new, |name| format!(" Did you mean `{name}`?"));
        Err(format!("`{word}` is not a property of a disk.{meant} There are {}", names.join(", ")))
    }

    pub(super) const fn shape(self) -> Shape {
        match self {
            Self::Size => Shape::Size,
            Self::Rotational => Shape::Words(&["yes", "no"]),
            Self::Transport => Shape::Words(&TRANSPORTS),
            Self::Role => Shape::Words(&Role::WORDS),
            Self::State => Shape::Words(&["off", "on", "protected", "none", "unknown"]),
            _ => Shape::Text,
        }
    }

    /// Returns an example of a value as typed.
    pub(super) const fn example(self) -> &'static str {
        match self {
            Self::Name => "sda",
            Self::Identity => "naa.5000c500a1b2c3d4",
            Self::Serial => "ZL2ABCDE",
            Self::Model => "ST4000NM0035 or, after ~, ST*",
            Self::Vendor => "seagate",
            Self::Transport => "sas",
            Self::Port => "host0/port-0:0 or, after ~, host0/*",
            Self::Size => "4TB",
            Self::Rotational => "yes",
            Self::Role => "root",
            Self::State => "off",
        }
    }

    /// Returns the values of a text or word field for a disk; empty if unknown.
    pub(super) fn words(self, view: &DeviceView) -> Vec<String> {
        let one = |text: &Option<String>| text.iter().cloned().collect();
        match self {
            Self::Name => vec![view.name.clone()],
            Self::Identity => one(&view.identity),
            Self::Serial => one(&view.serial),
            Self::Model => one(&view.model),
            Self::Vendor => one(&view.vendor),
            Self::Transport => vec![view.transport.clone()],
            Self::Port => vec![view.port.clone()],
            Self::Rotational => {
                view.rotational.map(|turns| if turns { "yes" } else { "no" }.to_owned()).into_iter().collect()
            }
            Self::Role => roles(view).iter().map(ToString::to_string).collect(),
            Self::State => vec![view.state.word().to_owned()],
            Self::Size => Vec::new(),
        }
    }
}
