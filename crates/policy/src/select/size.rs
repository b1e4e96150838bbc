//! Comparison of a disk's size with its nominal size.

/// Returns true if a disk of `size` bytes has the nominal size `named`: within one per cent.
pub(super) fn called(size: u64, named: u64) -> bool {
    size.abs_diff(named) <= named / 100
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_called_by_the_size_on_its_label() {
        assert!(called(4_000_787_030_016, 4_000_000_000_000), "sold as 4 TB");
        assert!(!called(3_840_755_982_336, 4_000_000_000_000), "sold as 3.84 TB");
    }
}
