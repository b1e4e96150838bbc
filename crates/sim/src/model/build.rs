//! Conversion of a model's tables to the timing of a drive.

use plumb_block::Bytes;

use super::behaviour::{Behaviour, Wce};
use super::document::Document;
use super::error::ContentError;
use super::geometry::Kind;
use super::load::Model;
use super::shipped;
use crate::timing::Timing;
use crate::timing::array::{self, ArrayTiming, MemberCaches, Members, Remote};
use crate::timing::controller::{Controller, ControllerParameters, Protection};
use crate::timing::flash::{self, FlashTiming, WriteBuffer};
use crate::timing::hdd::{Hdd, HddParameters};
use crate::timing::null::{self, NullTiming};

/// Components of a drive, by kind.
#[derive(Debug, Clone)]
pub enum Parameters {
    /// A spinning disk with its electronics.
    Hdd {
        /// The disk.
        mechanics: HddParameters,
        /// Link, queue and caches.
        controller: ControllerParameters,
    },
    /// Flash behind a controller.
    Flash(flash::Parameters),
    /// Several drives combined.
    Array {
        /// Way in which they are combined.
        array: array::Parameters,
        /// Model of each of the drives.
        member: Box<Model>,
    },
    /// A null drive, with or without a fixed latency.
    Null(null::Parameters),
}

/// Returns the names of the tables for a kind.
const fn tables(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Hdd => &["mechanics", "cache"],
        Kind::Ssd | Kind::Usb => &["flash"],
        Kind::Array => &["array"],
        Kind::Null | Kind::Memory => &["null"],
    }
}

impl Parameters {
    /// Reads the tables of `kind`, and refuses tables of other kinds.
    pub(super) fn read(document: &Document<'_>, kind: Kind) -> Result<Self, Box<ContentError>> {
        for table in ["mechanics", "cache", "flash", "array", "null"] {
            if document.has(table) && !tables(kind).contains(&table) {
                let expected =
                    format!("a drive of this kind is described by [{}]", tables(kind).join("], ["));
                return Err(document.error(table, &expected));
            }
        }
        Ok(match kind {
            Kind::Hdd => {
                Self::Hdd { mechanics: document.table("mechanics")?, controller: document.table("cache")? }
            }
            Kind::Ssd | Kind::Usb => Self::Flash(document.table("flash")?),
            Kind::Array => {
                let array: array::Parameters = document.table("array")?;
                Self::Array { member: Box::new(member(document, &array)?), array }
            }
            Kind::Null | Kind::Memory => Self::Null(document.table("null")?),
        })
    }
}

/// Returns the model of the members of `array`. Arrays of arrays are refused, so no model can contain itself.
fn member(document: &Document<'_>, array: &array::Parameters) -> Result<Model, Box<ContentError>> {
    let refuse = |expected: &str| document.error("array.member", expected);
    let text = shipped::text(&array.member)
        .filter(|_| !shipped::is_array(&array.member))
        .ok_or_else(|| refuse("expected the name of a shipped model that is not an array"))?;
    Model::from_text(&format!("{}.toml", array.member), text)
}

impl Parameters {
    /// Refuses a behaviour that is impossible for this kind of drive.
    pub(super) fn suit(
        &self,
        behaviour: &Behaviour,
        document: &Document<'_>,
    ) -> Result<(), Box<ContentError>> {
        let Self::Array { array, .. } = self else { return Ok(()) };
        match &array.controller {
            None if behaviour.battery_dead => Err(document.error(
                "behaviour.battery_dead",
                "expected an [array.controller] with a cache: this array has none of its own that a battery could keep",
            )),
            Some(_) if behaviour.wce == Wce::Absent => Err(document.error(
                "behaviour.wce",
                "expected \"on\" or \"off\", as [array.controller] has a cache; reports_write_through = true hides it from hosts",
            )),
            _ => Ok(()),
        }
    }
}

impl Behaviour {
    /// Returns the protection that the drive believes its cache to have, and whether it is real.
    const fn protection(&self) -> Protection {
        match (self.protected, self.battery_dead, self.battery_noticed) {
            (false, ..) => Protection::None,
            (true, false, _) => Protection::Healthy,
            (true, true, true) => Protection::DeadNoticed,
            (true, true, false) => Protection::DeadUnnoticed,
        }
    }
}

impl Model {
    /// Creates the timing of a drive of this model with a capacity of `size`, powered on, with the model's
    /// write cache; `seed` determines everything random.
    pub fn timing(&self, size: Bytes, seed: u64) -> Box<dyn Timing> {
        let size = self.size(Some(size));
        let wce = self.wce();
        let protection = self.behaviour.protection();
        match &*self.parameters {
            Parameters::Null(parameters) => Box::new(NullTiming::new(parameters)),
            Parameters::Flash(parameters) => {
                let through = protection == Protection::DeadNoticed;
                let protected = self.behaviour.protected && !through;
                let dead = protection == Protection::DeadUnnoticed;
                let buffer = WriteBuffer { protected, dead, through, wce };
                Box::new(FlashTiming::new(parameters, size, buffer, seed))
            }
            Parameters::Hdd { mechanics, controller } => {
                Box::new(Controller::new(controller, Hdd::new(mechanics, size), wce, protection))
            }
            Parameters::Array { array, member } => {
                let caches = MemberCaches { volatile: member.is_volatile(), wce: member.wce() };
                let timing = |size, seed| member.timing(size, seed);
                let members = ArrayTiming::new(array, size, caches, seed, timing);
                let Some(controller) = &array.controller else { return Box::new(members) };
                let cached = Controller::new(&controller.cache, Members::new(members), wce, protection);
                Box::new(Remote::new(controller.round_trip.0, cached))
            }
        }
    }

    /// Returns true if it has a write cache that a power cut empties.
    fn is_volatile(&self) -> bool {
        self.behaviour.wce != Wce::Absent && !self.behaviour.keeps_cache()
    }
}
