//! Decoders of probe answers: pure, one format in each file, without a panic on any input. A field beyond the
//! end of the answer is `None`.

pub mod ata_identify;
pub mod caching_page;
pub mod dm;
pub mod extended_inquiry;
pub mod inquiry;
pub mod loop_status;
pub mod nvlist;
pub mod nvme;

/// Returns the byte at `at`.
fn byte(bytes: &[u8], at: usize) -> Option<u8> {
    bytes.get(at).copied()
}

/// Returns true if bit `bit` of the byte at `at` is set; `None` if there is no such byte.
fn bit(bytes: &[u8], at: usize, bit: u8) -> Option<bool> {
    byte(bytes, at).map(|byte| byte >> bit & 1 == 1)
}

/// Returns the printable ASCII of a field without padding; `None` if nothing is left.
pub fn text(field: &[u8]) -> Option<String> {
    let printable = |byte: &u8| (0x20..0x7f).contains(byte);
    let text: String = field.iter().filter(|byte| printable(byte)).map(|byte| char::from(*byte)).collect();
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}
