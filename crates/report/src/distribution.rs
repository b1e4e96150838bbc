//! Table of distributions of durations side by side, with a row for each range of times. It shows which part
//! of the time of syncs is that of the device.

use std::iter::successors;

use crate::document::observation::BucketCount;
use crate::quantity::{count, duration};
use crate::terminal::{Cell, Side, Table};

/// Length of the longest bar, in columns.
const BAR: u64 = 6;

/// Durations of one kind of operation.
pub(crate) struct Distribution<'a> {
    /// Name of the column.
    pub(crate) name: String,
    /// Counts by range, the shortest times first.
    pub(crate) buckets: &'a [BucketCount],
}

/// Returns the table of the distributions that are not empty; `None` if all are.
pub(crate) fn table<'a>(all: impl IntoIterator<Item = Distribution<'a>>) -> Option<Table> {
    let all: Vec<_> = all.into_iter().filter(|of| !of.buckets.is_empty()).collect();
    let edges = || all.iter().flat_map(|of| of.buckets).map(|bucket| bucket.up_to);
    let (first, last) = (edges().flatten().reduce(f64::min)?, edges().flatten().reduce(f64::max)?);
    // Each edge is twice the previous one.
    let rows = successors(Some(first), |edge| (*edge < last).then_some(edge * 2.0)).map(Some);
    let beyond = edges().any(|edge| edge.is_none()).then_some(None);
    let head = all.iter().flat_map(|of| [(of.name.as_str(), Side::Right), ("", Side::Left)]);
    let head: Vec<_> = [("up to", Side::Right)].into_iter().chain(head).collect();
    let mut table = Table::new(&head);
    for edge in rows.chain(beyond) {
        let name = edge.map_or_else(|| "longer".to_owned(), duration);
        let cells = all.iter().flat_map(|of| {
            let counted = of.buckets.iter().find(|bucket| bucket.up_to == edge).map_or(0, |of| of.count);
            let most = of.buckets.iter().map(|of| of.count).max().unwrap_or(0);
            [Cell::plain(count(counted)), Cell::plain(bar(counted, most))]
        });
        table.row([Cell::plain(name)].into_iter().chain(cells).collect());
    }
    Some(table)
}

/// Returns a bar whose length is proportional to the count. Every count above 0 has a bar.
fn bar(count: u64, most: u64) -> String {
    let halves = (u128::from(count) * u128::from(BAR * 2)).div_ceil(u128::from(most.max(1))) as usize;
    format!("{}{}", "█".repeat(halves / 2), "▌".repeat(halves % 2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::Style;

    #[test]
    fn every_range_between_the_shortest_and_the_longest_has_a_row() {
        let bucket = |up_to, count| BucketCount { up_to, count };
        let syncs = [bucket(Some(0.004), 600), bucket(Some(0.008), 1), bucket(None, 300)];
        let flushes = [bucket(Some(0.001), 2)];
        let of = |name: &str, buckets| Distribution { name: name.to_owned(), buckets };
        let shown = |style: Style| {
            let table = table([of("syncs", &syncs[..]), of("vda write", &[]), of("vda flush", &flushes[..])]);
            style.finish(table.unwrap().show(style))
        };
        let expected = "   up to  syncs          vda flush
    1 ms      0                  2  ██████
    2 ms      0                  0
    4 ms    600  ██████          0
    8 ms      1  ▌               0
  longer    300  ███             0
";
        assert_eq!(shown(Style::PLAIN), expected);
        let ascii = expected.replace('█', "#").replace('▌', ":");
        assert_eq!(shown(Style { unicode: false, ..Style::PLAIN }), ascii);
        assert!(table([of("syncs", &[])]).is_none());
    }

    #[test]
    fn four_distributions_fit_into_80_columns() {
        let bucket = BucketCount { up_to: Some(0.000_976_562_5), count: 999_999 };
        let of = |name: &str| Distribution { name: name.to_owned(), buckets: std::slice::from_ref(&bucket) };
        let width = table(["syncs", "flush", "write", "read"].map(of)).unwrap().width();
        assert!(width <= 80, "{width}");
    }
}
