//! Models that ship with plumb, by name.

macro_rules! shipped {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../models/", $name, ".toml")))),*]
    };
}

/// Names and texts, in the order of lists.
const SHIPPED: &[(&str, &str)] = shipped![
    "all-flash-cluster",
    "hdd-space",
    "enterprise-sata-ssd",
    "nearline-4tb",
    "he8-media-cache",
    "ata-40gb",
    "sas-15k",
    "consumer-sata-ssd",
    "consumer-nvme-ssd",
    "plp-nvme-ssd",
    "usb-stick",
    "liar",
    "null",
    "memory",
];

/// Returns the names of the shipped models.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    SHIPPED.iter().map(|(name, _)| *name)
}

/// Returns true if the model called `name` is an array.
pub(super) fn is_array(name: &str) -> bool {
    text(name).is_some_and(|text| text.lines().any(|line| line == "kind = \"array\""))
}

/// Returns the text of the model called `name`.
pub(super) fn text(name: &str) -> Option<&'static str> {
    SHIPPED.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}
