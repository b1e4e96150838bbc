//! `[array]` of a model.

use plumb_block::{Bytes, Nanos};
use serde::Deserialize;

use crate::model::{Check, Limits, Rate, Size, Time};
use crate::timing::controller::ControllerParameters;

/// Members of a stripe at most.
pub(super) const COLUMNS_MAX: usize = 64;

/// When a write to several copies is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Acknowledge {
    /// When every copy has answered.
    #[default]
    All,
    /// When more than half of the copies have.
    Quorum,
}

/// How members make one drive.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// The model of every member: the name of a shipped one that is not an array itself.
    pub member: String,
    /// Number of members that a stripe runs over.
    pub columns: u32,
    /// Amount that goes to one column before the next.
    pub stripe: Size,
    /// How many copies of each column there are.
    pub copies: u32,
    /// When a write is answered.
    #[serde(default)]
    pub acknowledge: Acknowledge,
    /// Round trip to a member, with the software on both sides.
    pub round_trip: Time,
    /// Largest extra delay of a round trip, drawn uniformly.
    pub jitter: Time,
    /// The rate of the host's own link, each way.
    pub link: Rate,
    /// Time that the software in front spends on a command before it can take the next.
    pub command: Time,
    /// A controller with a write cache in front of all members: the network is then between it and them.
    pub controller: Option<ArrayController>,
}

/// `[array.controller]`: what answers the host before a member has been asked.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArrayController {
    /// From the host to it and back, beside what it takes itself: next to nothing for a card in the host, a
    /// network for an array in a box of its own.
    pub round_trip: Time,
    /// Link, queue and write cache of the controller. What keeps the cache through a power cut is the array's
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
