//! How long an RSA key is: the library only says that it cannot use one.

use rustls::pki_types::PrivateKeyDer;

const INTEGER: u8 = 0x02;
const OCTET_STRING: u8 = 0x04;
const SEQUENCE: u8 = 0x30;
/// `rsaEncryption` (RFC 8017, appendix C), as an element of its own.
const RSA: [u8; 11] = [0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];

/// The length of the modulus of an RSA key in bits; `None` for another kind of key, and for one that cannot be read. PKCS #1
/// (RFC 8017, appendix A.1.2), or the same in PKCS #8 (RFC 5208, section 5).
pub(super) fn bits(key: &PrivateKeyDer<'_>) -> Option<usize> {
    let rsa = match key {
        PrivateKeyDer::Pkcs1(key) => key.secret_pkcs1_der(),
        PrivateKeyDer::Pkcs8(key) => {
            let (fields, _) = element(SEQUENCE, key.secret_pkcs8_der())?;
            let (_version, rest) = element(INTEGER, fields)?;
            let (algorithm, rest) = element(SEQUENCE, rest)?;
            element(OCTET_STRING, rest).filter(|_| algorithm.starts_with(&RSA))?.0
        }
        _ => return None,
    };
    let (fields, _) = element(SEQUENCE, rsa)?;
    let (_version, rest) = element(INTEGER, fields)?;
    let (modulus, _) = element(INTEGER, rest)?;
    let start = modulus.iter().position(|byte| *byte != 0)?;
    Some((modulus.len() - start) * 8 - modulus[start].leading_zeros() as usize)
}

/// The content of the element with this tag at the front of `der`, and what follows it (X.690, section 8.1).
fn element(tag: u8, der: &[u8]) -> Option<(&[u8], &[u8])> {
    let (first, rest) =
        der.split_first().filter(|(found, _)| **found == tag).and_then(|(_, rest)| rest.split_first())?;
    if *first < 0x80 {
        return rest.split_at_checked(usize::from(*first));
    }
    let (length, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
    let length = length.iter().fold(0_usize, |length, byte| length << 8 | usize::from(*byte));
    rest.split_at_checked(length)
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::{PrivatePkcs1KeyDer, PrivatePkcs8KeyDer};

    use super::*;

    /// An element with its length in as few bytes as it takes.
    fn made(tag: u8, content: &[u8]) -> Vec<u8> {
        let length = content.len().to_be_bytes();
        let length = &length[length.iter().position(|byte| *byte != 0).unwrap_or(length.len() - 1)..];
        let mut bytes = vec![tag];
        if content.len() >= 0x80 {
            bytes.push(0x80 | length.len() as u8);
        }
        [&bytes, length, content].concat()
    }

    /// A key with a modulus of `bits` bits; its other numbers are left out.
    fn pkcs1(bits: usize) -> Vec<u8> {
        let mut modulus = vec![0xff; bits.div_ceil(8)];
        modulus[0] = 0xff >> (modulus.len() * 8 - bits);
        modulus.insert(0, 0);
        made(SEQUENCE, &[made(INTEGER, &[0]), made(INTEGER, &modulus)].concat())
    }

    #[test]
    fn the_length_of_any_rsa_key_is_told() {
        for bits in [512, 1023, 1024, 2047, 2048, 2500, 3072, 4096, 8192, 16_384] {
            let key = pkcs1(bits);
            let algorithm = made(SEQUENCE, &[&RSA[..], &[5, 0]].concat());
            let fields = [made(INTEGER, &[0]), algorithm, made(OCTET_STRING, &key)].concat();
            let in_pkcs8 = PrivatePkcs8KeyDer::from(made(SEQUENCE, &fields));
            assert_eq!(super::bits(&in_pkcs8.into()), Some(bits));
            assert_eq!(super::bits(&PrivatePkcs1KeyDer::from(key).into()), Some(bits));
        }
    }

    #[test]
    fn what_is_cut_off_has_no_length() {
        let key = pkcs1(2048);
        for end in 0..key.len() - 1 {
            assert_eq!(super::bits(&PrivatePkcs1KeyDer::from(key[..end].to_vec()).into()), None, "{end}");
        }
    }
}
