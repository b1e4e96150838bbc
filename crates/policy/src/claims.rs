//! Recording of administrators' claims that a disk's cache survives a power cut, and the evidence required
//! for `protected`.
//!
//! The file format is in [`crate::device::claims`]: the last claim about a disk counts until it expires. New
//! claims are appended, so that hand-written text and comments are preserved.

use std::path::Path;

use jiff::Timestamp;
use jiff::civil::Date;

pub use crate::device::{Claim, Claims, ClaimsError};
use crate::file;
use crate::view::{DeviceView, Protection, ProtectionRank};

const HEADER: &str = "# Disks whose write cache survives a power cut, by the word of an administrator. Read by plumb policy.\n";

/// Parses the expiry of a claim: a time, or a day, which ends in UTC.
///
/// # Errors
/// If the text is neither.
pub fn parse_until(typed: &str) -> Result<Timestamp, String> {
    if let Ok(time) = typed.parse() {
        return Ok(time);
    }
    let wrong = |_| format!("`{typed}` is not a date: expected such as 2027-06-30 or 2027-06-30T12:00:00Z");
    let day: Date = typed.parse().map_err(wrong)?;
    format!("{}T00:00:00Z", day.tomorrow().map_err(wrong)?).parse().map_err(wrong)
}

/// Appends a claim to the file at `path`, durably.
///
/// # Errors
/// If the claim is incomplete or has expired, or the file cannot be read, parsed or written.
pub fn record(path: &Path, claim: &Claim, now: Timestamp) -> Result<(), ClaimsError> {
    if claim.until <= now {
        return Err(ClaimsError::Ended { until: claim.until, now });
    }
    let addition = Claims { claims: vec![claim.clone()] }.to_toml()?;
    // Both the addition and the result must be readable.
    Claims::parse(&addition, "the claim")?;
    let mut text = Claims::read(path)?.map_or_else(|| HEADER.to_owned(), |(_, text)| text);
    if !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(file::publish(path, format!("{text}\n{addition}").as_bytes())?)
}

/// Removes all claims about a disk from the file. Returns their number. Comments in the file are lost.
///
/// # Errors
/// If the file cannot be read, parsed or written.
pub fn withdraw(path: &Path, identity: &str) -> Result<usize, ClaimsError> {
    let mut claims = Claims::load(path)?;
    let before = claims.claims.len();
    claims.claims.retain(|claim| claim.identity != identity);
    let withdrawn = before - claims.claims.len();
    if withdrawn > 0 {
        file::publish(path, format!("{HEADER}\n{}", claims.to_toml()?).as_bytes())?;
    }
    Ok(withdrawn)
}

/// Returns the evidence for `protected` on a disk: the drive's or the model's declaration, else a recorded
/// claim that has not expired. `view` must have been read with the same `claims`.
///
/// # Errors
/// The reason why there is no sufficient evidence.
pub fn protection(view: &DeviceView, claims: &Claims, now: Timestamp) -> Result<Protection, String> {
    let word = view.identity.as_deref().and_then(|identity| claims.about(identity));
    match (&view.protection, word) {
        (Some(own), _) if own.rank <= ProtectionRank::ModelList => Ok(own.clone()),
        (Some(own), Some(word)) if own.rank == ProtectionRank::AdministratorsWord && word.until > now => {
            Ok(own.clone())
        }
        (_, Some(word)) if word.until <= now => Err(format!(
            "the claim by {} that its cache survives a power cut expired at {}",
            word.who, word.until
        )),
        (_, Some(word)) => Err(format!(
            "the claim by {} that its cache survives a power cut is ignored: the drive itself reports \
             otherwise",
            word.who
        )),
        (Some(own), None) => {
            Err(format!("nothing better than this says that its cache survives a power cut: {}", own.claim))
        }
        (None, None) => Err("nothing says that its cache survives a power cut".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::tests::sample;

    fn moment(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn claim(identity: &str, who: &str, until: &str) -> Claim {
        Claim {
            identity: identity.into(),
            who: who.into(),
            until: moment(until),
            reason: "a \"UPS\"\nb".into(),
        }
    }

    #[test]
    fn a_claim_for_a_day_counts_to_the_end_of_it() {
        assert_eq!(parse_until("2027-06-30").unwrap().to_string(), "2027-07-01T00:00:00Z");
        assert_eq!(parse_until("2027-06-30T12:00:00+02:00").unwrap().to_string(), "2027-06-30T10:00:00Z");
        for wrong in ["soon", "", "2027-02-30", "30.6.2027", "9999-12-31"] {
            assert!(parse_until(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn words_are_added_behind_what_people_wrote_and_taken_out_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("etc/claims.toml");
        let now = moment("2026-11-22T00:00:00Z");
        record(&path, &claim("naa.a", "R. Miller", "2027-01-01T00:00:00Z"), now).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("# Disks"), "{text}");
        std::fs::write(&path, format!("{text}# until the audit")).unwrap();
        record(&path, &claim("naa.b", "S", "2027-01-01T00:00:00Z"), now).unwrap();
        assert!(std::fs::read_to_string(&path).unwrap().contains("# until the audit\n"));
        assert_eq!(Claims::load(&path).unwrap().claims.len(), 2);
        assert_eq!(withdraw(&path, "naa.a").unwrap(), 1);
        assert_eq!(withdraw(&path, "naa.a").unwrap(), 0);
        assert_eq!(Claims::load(&path).unwrap().claims[0].who, "S");
    }

    #[test]
    fn what_has_ended_or_says_too_little_is_not_recorded() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("claims.toml");
        let now = moment("2026-11-22T00:00:00Z");
        let ended = record(&path, &claim("naa.a", "R", "2026-11-22T00:00:00Z"), now).unwrap_err();
        assert!(matches!(ended, ClaimsError::Ended { .. }));
        assert!(record(&path, &claim("naa.a", " ", "2027-01-01T00:00:00Z"), now).is_err());
        std::fs::write(&path, "[[claim]]\nidentity = 1\n").unwrap();
        assert!(record(&path, &claim("naa.a", "R", "2027-01-01T00:00:00Z"), now).is_err(), "not added to");
    }

    #[test]
    fn protected_rests_on_a_model_or_better_or_on_a_word_that_has_not_ended() {
        let now = moment("2026-11-22T00:00:00Z");
        let words = Claims { claims: vec![claim("naa.sda", "R. Miller", "2027-01-01T00:00:00Z")] };
        for (rank, alone, with_word) in [
            (Some(ProtectionRank::Declared), true, true),
            (Some(ProtectionRank::HealthConfirmed), true, true),
            (Some(ProtectionRank::ModelList), true, true),
            (Some(ProtectionRank::AdministratorsWord), false, true),
            (Some(ProtectionRank::TimingHint), false, false),
            (None, false, false),
        ] {
            let mut view = sample("sda");
            view.protection = rank.map(|rank| Protection { claim: "x".into(), rank, until: None });
            assert_eq!(protection(&view, &Claims::default(), now).is_ok(), alone, "{rank:?}");
            assert_eq!(protection(&view, &words, now).is_ok(), with_word, "{rank:?}");
        }
        let mut view = sample("sda");
        let later = moment("2027-01-01T00:00:00Z");
        view.protection =
            Some(Protection { claim: "x".into(), rank: ProtectionRank::AdministratorsWord, until: None });
        let ended = protection(&view, &words, later).unwrap_err();
        assert!(ended.contains("R. Miller") && ended.contains("2027-01-01"), "{ended}");
    }
}
