//! `[array]` of a model.

use plumb_block::{Bytes, Nanos};
use serde::Deserialize;

use crate::model::{Check, Limits, Rate, Size, Time};
use crate::timing::controller::ControllerParameters;

/// Maximum number of columns.
pub(super) const COLUMNS_MAX: usize = 64;

/// Condition for answering a write to several copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Acknowledge {
    /// Every copy has answered.
    #[default]
    All,
    /// More than half of the copies have answered.
    Quorum,
}

/// Combination of members to one drive.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// Model of every member: the name of a shipped one that is not an array.
    pub member: String,
    /// Number of columns of a stripe.
    pub columns: u32,
    /// Amount written to one column before the next.
    pub stripe: Size,
    /// Number of copies of each column.
    pub copies: u32,
    /// Condition for answering a write.
    #[serde(default)]
    pub acknowledge: Acknowledge,
    /// Round-trip time to a member, including the software on both sides.
    pub round_trip: Time,
    /// Maximum additional delay of a round trip, uniformly distributed.
    pub jitter: Time,
    /// Rate of the host's own link in each direction.
    pub link: Rate,
    /// Serial processing time of a command in the software in front.
    pub command: Time,
    /// Controller with a write cache in front of all members; the network is then between it and them.
    pub controller: Option<ArrayController>,
}

/// `[array.controller]`: controller that answers the host from its cache.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArrayController {
    /// Round-trip time from the host to the controller, in addition to its own times: almost zero for a card
    /// in the host, a network for a separate array.
    pub round_trip: Time,
    /// Link, queue and write cache of the controller. The protection of the cache is part of the array's
    /// [`Behaviour`](crate::model::Behaviour).
    pub cache: ControllerParameters,
}

impl Limits for Parameters {
    fn limits(&self, check: &mut Check) {
        check.within("columns", &self.columns, &(1..=COLUMNS_MAX as u32));
        let stripe = self.stripe.0.0;
        let fits = stripe.is_power_of_two() && (Bytes::kib(64).0..=Bytes::mib(64).0).contains(&stripe);
        check.that("stripe", fits, "a power of two, 64 KiB to 64 MiB");
        check.within("copies", &self.copies, &(1..=8));
        let times = Time(Nanos(0))..=Time(Nanos::secs(1));
        for (field, time) in
            [("round_trip", self.round_trip), ("jitter", self.jitter), ("command", self.command)]
        {
            check.within(field, &time, &times);
        }
        check.within("link", &self.link, &(Rate(1_000_000)..=Rate(1_000_000_000_000)));
        if let Some(controller) = &self.controller {
            check.table("controller", controller);
        }
    }
}

impl Limits for ArrayController {
    fn limits(&self, check: &mut Check) {
        check.within("round_trip", &self.round_trip, &(Time(Nanos(0))..=Time(Nanos::secs(1))));
        check.that(
            "cache.write",
            self.cache.write.is_some(),
            "a write cache: without one, leave [array.controller] out",
        );
        check.that("cache.media", self.cache.media.is_none(), "no media cache: that is a disk's");
        check.table("cache", &self.cache);
    }
}
