//! SHA-256 as text, to detect altered plans and damaged records.

use std::io::{self, Read};

use ring::digest::{Context, SHA256, digest};

use crate::hex;

/// Bytes read from a stream at once.
const CHUNK: usize = 256 << 10;

/// Returns the digest as 64 hexadecimal digits.
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex::encode(digest(&SHA256, bytes).as_ref())
}

/// Returns the digest of everything that `from` yields until its end.
///
/// # Errors
/// Fails as the reader does.
pub fn sha256_hex_of(mut from: impl Read) -> io::Result<String> {
    let mut context = Context::new(&SHA256);
    let mut chunk = vec![0; CHUNK];
    loop {
        match from.read(&mut chunk) {
            Ok(0) => return Ok(hex::encode(context.finish().as_ref())),
            Ok(count) => context.update(&chunk[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_is_that_of_fips_180() {
        assert_eq!(sha256_hex(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(sha256_hex_of(&b"abc"[..]).unwrap(), sha256_hex(b"abc"));
    }
}
