//! Administrators' words: who says of which disk that its cache survives a power cut, until when, and why.
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

/// One word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The disk, as in [`crate::gateway::Disk::identity`].
    pub identity: String,
    /// Person who says so.
    pub who: String,
    /// Time at which the claim expires.
    #[serde(with = "rfc3339")]
    pub until: Timestamp,
    /// Why.
    pub reason: String,
}

/// All words of a machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claims {
    /// Claims in the order of the file; the last one about a disk counts.
    #[serde(default, rename = "claim")]
    pub claims: Vec<Claim>,
}

/// The file of the claims cannot be used, or a claim is not recorded.
#[derive(Debug, thiserror::Error)]
pub enum ClaimsError {
    /// The file system refused or failed.
    #[error(transparent)]
    File(#[from] FileError),
    /// The file is not a list of claims.
    #[error(
        "{place} holds no claims of protection: {what}; expected [[claim]] tables with identity, who, until and reason"
    )]
    Format {
        /// The file.
        place: String,
        /// Problem, with the line.
        what: String,
    },
    /// A claim that would never count.
    #[error("the claim would have ended already: {until} is not after {now}; give a later end")]
    Ended {
        /// End of the claim.
        until: Timestamp,
        /// Present time.
        now: Timestamp,
    },
}

impl Claims {
    /// Reads `place`; a file that is not there holds no claims.
    ///
    /// # Errors
    /// [`ClaimsError`] if it cannot be read or is none.
    pub fn load(place: &Path) -> Result<Self, ClaimsError> {
        Ok(Self::read(place)?.map_or_else(Self::default, |(claims, _)| claims))
    }

    /// Reads `place`, with its text; none if there is no such file.
    pub(crate) fn read(place: &Path) -> Result<Option<(Self, String)>, ClaimsError> {
        let Some(bytes) = file::read(place)? else { return Ok(None) };
        let shown = place.display().to_string();
        let text = String::from_utf8(bytes)
            .map_err(|error| ClaimsError::Format { place: shown.clone(), what: error.to_string() })?;
        Ok(Some((Self::parse(&text, &shown)?, text)))
    }

    /// Reads the text of the file at `place`.
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

    /// Returns the text that [`Claims::parse`] reads.
    ///
    /// # Errors
    /// [`ClaimsError::Format`] never, as far as is known: TOML holds all that a claim can hold.
    pub fn to_toml(&self) -> Result<String, ClaimsError> {
        toml::to_string(self)
            .map_err(|error| ClaimsError::Format { place: "the claims".to_owned(), what: error.to_string() })
    }

    /// Returns the last word about a disk, whether it counts or has expired.
    pub fn about(&self, identity: &str) -> Option<&Claim> {
        self.claims.iter().rfind(|claim| claim.identity == identity)
    }
}

/// A time as the text of RFC 3339.
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
