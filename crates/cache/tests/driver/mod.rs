//! Tests that the driver keeps the contract of the waist: over simulated drives in virtual time and in real
//! time, and over files.

mod conforms;
