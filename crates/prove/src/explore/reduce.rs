//! Delta debugging: removes everything that a failure does not need (Zeller and Hildebrandt, "Simplifying and
//! Isolating Failure-Inducing Input", 2002).

/// Removes parts of `all`, large ones first, if `take` accepts the removal. Ends when no single element can
/// be removed.
pub(crate) fn reduce<T: Copy>(mut all: Vec<T>, take: &mut impl FnMut(&[T]) -> bool) {
    let mut size = all.len();
    while size > 0 {
        let mut start = 0;
        while start < all.len() {
            let end = (start + size).min(all.len());
            if take(&all[start..end]) {
                all.drain(start..end);
            } else {
                start = end;
            }
        }
        size = if size == 1 { 0 } else { size.div_ceil(2) };
    }
}
