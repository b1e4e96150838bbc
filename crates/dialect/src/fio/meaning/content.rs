//! Content of writes, and verification.

use plumb_workload::Content;

use super::rw::Rw;
use crate::Error;
use crate::fio::options::Options;

/// Checks of fio, except 0 and null.
const CHECKS: [&str; 21] = [
    "md5",
    "crc64",
    "crc32",
    "crc32c-intel",
    "crc32c",
    "crc16",
    "crc7",
    "sha1",
    "sha256",
    "sha512",
    "sha3-224",
    "sha3-256",
    "sha3-384",
    "sha3-512",
    "xxhash",
    "meta",
    "pattern",
    "null",
    "0",
    "none",
    "pattern_hdr",
];

/// Returns the content of writes.
pub(super) fn from_options(options: &Options<'_>, rw: &Rw) -> Result<Content, Error> {
    let zeroes = options.truth("zero_buffers", false)?;
    let refill = options.truth("refill_buffers", false)?;
    let scramble = options.truth("scramble_buffers", true)?;
    let compress = options.whole("buffer_compress_percentage", 0..=100)?.unwrap_or(0) as u8;
    let dedup = options.whole("dedupe_percentage", 0..=100)?.unwrap_or(0) as u8;
    if options.choice("dedupe_mode", &["repeat", "working_set"])? == Some("working_set") {
        return options.refuse(
            "dedupe_mode",
            "copies of blocks that were written before are not made",
            "use dedupe_mode=repeat",
        );
    }
    if options.get("buffer_compress_chunk").is_some() {
        options.note("buffer_compress_chunk has no effect: each block compresses by its share");
    }
    if let Some(pattern) = options.text("buffer_pattern")? {
        return constant(options, pattern, rw);
    }
    Ok(match (zeroes, compress, dedup) {
        (true, ..) | (_, 100, _) => Content::Zeroes,
        (_, _, 100) => Content::Repeated,
        (_, 0, 0) if refill || scramble => Content::Pattern,
        (_, 0, 0) => Content::Repeated,
        (_, compress_percent, dedup_percent) => Content::Reducible { compress_percent, dedup_percent },
    })
}

/// Returns the content of a repeated pattern. Only zeroes are supported.
fn constant(options: &Options<'_>, pattern: &str, rw: &Rw) -> Result<Content, Error> {
    let digits = pattern.strip_prefix("0x").unwrap_or(pattern);
    if !digits.is_empty() && digits.chars().all(|digit| digit == '0') {
        return Ok(Content::Zeroes);
    }
    if !rw.writes {
        options.note("buffer_pattern has no effect: the job never writes");
        return Ok(Content::Pattern);
    }
    options.refuse(
        "buffer_pattern",
        "zeroes are the only pattern of written data that is supported",
        "leave it out for noise, or use buffer_compress_percentage",
    )
}

/// Returns true if the job verifies the writes of `content`.
pub(super) fn verify(
    options: &Options<'_>,
    rw: &Rw,
    content: &Content,
    shares_file: bool,
) -> Result<bool, Error> {
    let given = options.choice("verify", &CHECKS)?;
    let pattern = options.parsed("verify_pattern", |text| {
        let is_bare = text.starts_with(|letter: char| letter.is_ascii_alphabetic());
        if is_bare { Err(format!("is `{text}`: expected a number, or a text in quotes")) } else { Ok(()) }
    })?;
    let pattern = pattern.is_some();
    // In fio a pattern alone enables verification.
    let name = if given.is_none() && pattern { "verify_pattern" } else { "verify" };
    let check = given.unwrap_or(if pattern { "pattern" } else { "0" });
    let wanted = options.truth("do_verify", true)?;
    if ["0", "none", "null"].contains(&check) {
        options.note_unused(&["verify_pattern"], "nothing is verified");
        return Ok(false);
    }
    if given.is_some() {
        options.note_unused(&["verify_pattern"], "blocks hold plumb's own stamp and noise");
    }
    if !rw.writes {
        let error = options.error(name, "there is nothing to compare with: this job never writes");
        return Err(error.remedy("verify in the job that writes; headers of fio's are not read"));
    }
    if !wanted {
        options.note("do_verify=0: writes carry their stamps, and nothing reads them back");
        return Ok(false);
    }
    if shares_file {
        return options.refuse(
            name,
            "several clones write to the same file, so verification cannot know which write came last",
            "use numjobs=1, or leave filename out so that each clone has a file of its own",
        );
    }
    if matches!(content, Content::Zeroes | Content::Repeated | Content::Reducible { dedup_percent: 1.., .. })
    {
        return options.refuse(
            name,
            "needs blocks that say where and when they were written, and other options make all alike",
            "leave out zero_buffers, buffer_pattern, scramble_buffers=0, dedupe_percentage and \
             buffer_compress_percentage=100",
        );
    }
    let passes =
        options.whole("loops", 1..=u64::MAX)?.unwrap_or(1) > 1 || options.truth("time_based", false)?;
    if passes {
        options.note(
            "verify: the last version of each block is read back once, at the end; fio reads everything back after each pass",
        );
    }
    options.note(format!(
        "verify={check}: every block carries plumb's own stamp (place, version, checksum) instead, and lost, torn, \
         stale and misdirected blocks are told apart"
    ));
    Ok(true)
}
