//! Questions to drives, and the bytes of their answers: for people who hold them against a specification.

use std::fmt::Write as _;

use plumb_report::printable::printable;

use super::super::recording_gateway::Exchange;

const ROW: usize = 16;

/// All questions to a disk with their answers.
pub(in super::super) fn answers(disk: &str, exchanges: &[Exchange]) -> String {
    let mut out = format!("\nWhat {} was asked\n", printable(disk));
    if exchanges.is_empty() {
        out.push_str("  nothing: all that is known was read from /sys and /proc\n");
    }
    for one in exchanges {
        // Writing to a String cannot fail.
        match &one.answer {
            Ok(bytes) => {
                writeln!(out, "  {}: {} bytes", one.question, bytes.len()).ok();
                dump(&mut out, bytes);
            }
            Err(why) => {
                writeln!(out, "  {}: no answer, {}", one.question, printable(why)).ok();
            }
        }
    }
    out
}

/// Offsets and hexadecimal digits; rows of zeroes are left out.
fn dump(out: &mut String, bytes: &[u8]) {
    let mut is_gap = false;
    for (number, row) in bytes.chunks(ROW).enumerate() {
        if row.iter().all(|byte| *byte == 0) {
            if !is_gap {
                out.push_str("    ...   zeroes\n");
            }
            is_gap = true;
            continue;
        }
        is_gap = false;
        let digits: Vec<String> = row.iter().map(|byte| format!("{byte:02x}")).collect();
        let text: String = row
            .iter()
            .map(|byte| if (b' '..=b'~').contains(byte) { char::from(*byte) } else { '.' })
            .collect();
        writeln!(out, "    {:04x}  {:<47}  {text}", number * ROW, digits.join(" ")).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_that_says_something_is_printed_with_its_place() {
        let mut bytes = vec![0_u8; 40];
        bytes[0] = 0x12;
        bytes[39] = b'A';
        let exchanges = [
            Exchange { disk: "sda".into(), question: "inquiry".into(), answer: Ok(bytes) },
            Exchange { disk: "sda".into(), question: "ata-identify".into(), answer: Err("EPERM".into()) },
        ];
        let text = answers("sda", &exchanges);
        assert!(text.contains("inquiry: 40 bytes\n    0000  12 00"), "{text}");
        assert!(text.contains("    ...   zeroes\n    0020  00 00 00 00 00 00 00 41"), "{text}");
        assert!(text.contains("ata-identify: no answer, EPERM"), "{text}");
    }
}
