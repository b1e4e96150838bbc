//! Administrators' claims that the cache of a disk survives a power cut: by whom, until when, and why.
//!
//! ```toml
//! [[claim]]
//! identity = "naa.5000c500a1b2c3d4"   # as `plumb policy show` prints it
//! who = "Jane Doe <jane@example.org>"
//! until = "2027-06-30T00:00:00Z"      # RFC 3339; a claim without an end is refused
//! reason = "shelf 3 is on the UPS of hall B"
//! ```

use std::path::Path;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::file::{self, FileError};

/// A claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Identity of the disk, as in [`crate::gateway::Disk::identity`].
    pub identity: String,
    /// Person who makes the claim.
    pub who: String,
    /// Time at which the claim expires.
    #[serde(with = "rfc3339")]
    pub until: Timestamp,
    /// Reason for the claim.
    pub reason: String,
}

/// All claims on a machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claims {
    /// Claims in file order; the last one about a disk counts.
    #[serde(default, rename = "claim")]
    pub claims: Vec<Claim>,
}

/// Error of the file of claims, or of recording a claim.
#[derive(Debug, thiserror::Error)]
pub enum ClaimsError {
    /// The file could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The file is not a list of claims.
    #[error(
        "{place} holds no claims of protection: {what}; expected [[claim]] tables with identity, who, until and reason"
    )]
    Format {
        /// The file.
        place: String,
        /// Description of the problem, with the line.
        what: String,
    },
    /// The claim has already expired.
    #[error("the claim would have ended already: {until} is not after {now}; give a later end")]
    Ended {
        /// Expiry of the claim.
        until: Timestamp,
        /// Current time.
        now: Timestamp,
    },
}

impl Claims {
    /// Reads claims from `place`; a missing file has none.
    ///
    /// # Errors
    /// [`ClaimsError`] if the file cannot be read or parsed.
    pub fn load(place: &Path) -> Result<Self, ClaimsError> {
        Ok(Self::read(place)?.map_or_else(Self::default, |(claims, _)| claims))
    }

    /// Reads claims from `place`, together with the text; `None` if the file is missing.
    pub(crate) fn read(place: &Path) -> Result<Option<(Self, String)>, ClaimsError> {
        let Some(bytes) = file::read(place)? else { return Ok(None) };
        let shown = place.display().to_string();
        let text = String::from_utf8(bytes)
            .map_err(|error| ClaimsError::Format { place: shown.clone(), what: error.to_string() })?;
        Ok(Some((Self::parse(&text, &shown)?, text)))
    }

    /// Parses claims; `place` is for messages.
    ///
    /// # Errors
    /// [`ClaimsError::Format`].
    pub fn parse(text: &str, place: &str) -> Result<Self, ClaimsError> {
        let wrong = |what: String| ClaimsError::Format { place: place.to_owned(), what };
        let claims: Self =
            toml::from_str(text).map_err(|error| wrong(error.to_string().trim().to_owned()))?;
        for claim in &claims.claims {
            for (field, value) in
                [("identity", &claim.identity), ("who", &claim.who), ("reason", &claim.reason)]
            {
                if value.trim().is_empty() {
                    return Err(wrong(format!("{field} of the claim for `{}` is empty", claim.identity)));
                }
            }
        }
        Ok(claims)
    }

    /// Formats claims as text for [`Claims::parse`].
    ///
    /// # Errors
    /// [`ClaimsError::Format`] if the claims cannot be expressed in TOML, which is not known to happen.
    pub(crate) fn to_toml(&self) -> Result<String, ClaimsError> {
        toml::to_string(self)
            .map_err(|error| ClaimsError::Format { place: "the claims".to_owned(), what: error.to_string() })
    }

    /// Returns the last claim about a disk, whether expired or not.
    pub fn about(&self, identity: &str) -> Option<&Claim> {
        self.claims.iter().rfind(|claim| claim.identity == identity)
    }
}

/// Serializes a time as RFC 3339.
mod rfc3339 {
    use jiff::Timestamp;
    use serde::{Deserialize, Deserializer, Serializer, de::Error as _};

    pub(super) fn serialize<S: Serializer>(time: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(time)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse()
            .map_err(|_| D::Error::custom(format!("`{text}` is not a time such as 2027-06-30T00:00:00Z")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "[[claim]]\nidentity = \"naa.5\"\nwho = \"J\"\nuntil = \"2027-06-30T00:00:00Z\"\nreason = \"UPS\"\n";

    #[test]
    fn claims_survive_the_file() {
        let claims = Claims::parse(TEXT, "x").unwrap();
        assert_eq!(claims.about("naa.5").map(|claim| claim.who.as_str()), Some("J"));
        assert_eq!(claims.about("naa.6"), None);
        assert_eq!(Claims::parse(&claims.to_toml().unwrap(), "x").unwrap(), claims);
        assert_eq!(Claims::parse("", "x").unwrap(), Claims::default());
        assert_eq!(Claims::load(Path::new("/nonexistent/claims.toml")).unwrap(), Claims::default());
    }

    #[test]
    fn a_claim_that_is_not_whole_is_refused_by_name() {
        for (from, to, expected) in [
            ("until = \"2027-06-30T00:00:00Z\"\n", "", "until"),
            ("2027-06-30", "soon", "soon"),
            ("\"J\"", "\" \"", "who of the claim for `naa.5` is empty"),
            ("reason", "because", "because"),
        ] {
            let error = Claims::parse(&TEXT.replace(from, to), "/etc/x").unwrap_err().to_string();
            assert!(error.contains(expected) && error.contains("/etc/x"), "{error}");
        }
    }
}
