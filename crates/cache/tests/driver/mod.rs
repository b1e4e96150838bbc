//! The driver is held to the contract of the waist: over simulated drives in virtual time, by the real clock,
//! and over files.

mod conforms;
