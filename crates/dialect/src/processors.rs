//! Lists of processors, common to all dialects.

use crate::Machine;

/// Upper bound on the number of processors. A range is expanded, and must not exhaust memory.
const PROCESSORS_MAX: u64 = 1 << 16;

/// Parses numbers and ranges: `0-3,8`. `None` for other text.
pub(crate) fn of_list(text: &str, separators: &[char]) -> Option<Vec<u32>> {
    let mut processors = Vec::new();
    for part in text.split(separators) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.trim().parse::<u32>().ok()?, last.trim().parse::<u32>().ok()?);
        let count = u64::from(last.checked_sub(first)?) + 1;
        if processors.len() as u64 + count > PROCESSORS_MAX {
            return None;
        }
        processors.extend(first..=last);
    }
    Some(processors)
}

/// Returns the processors of a bit mask: `0x5` is processors 0 and 2.
pub(crate) fn of_mask(mask: u64) -> Vec<u32> {
    (0..64).filter(|bit| mask >> bit & 1 == 1).collect()
}

/// Checks that this process may run on `processors`.
///
/// # Errors
/// The first other processor, and the list of those allowed.
pub(crate) fn check(processors: &[u32], machine: &Machine) -> Result<(), String> {
    let Some(missing) = processors.iter().find(|number| !machine.processors.contains(number)) else {
        return Ok(());
    };
    let there: Vec<String> = machine.processors.iter().map(u32::to_string).collect();
    let there = there.join(", ");
    Err(format!("processor {missing} does not exist or is not for this process: there are {there}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_masks_are_processors() {
        assert_eq!(of_list("0-2,7", &[',', ':']), Some(vec![0, 1, 2, 7]));
        for text in ["3-1", "0-4000000000", "a", "", "1,"] {
            assert_eq!(of_list(text, &[',']), None, "{text}");
        }
        assert_eq!((of_mask(5), of_mask(0)), (vec![0, 2], Vec::new()));
    }
}
