//! The tests of this crate from outside. One program, so that it is linked once: a scenario a file, and what
//! they share.

mod damaged_recordings;
mod device_mapper;
mod exposure;
mod file_systems;
mod fixtures_of;
mod guests;
mod layers;
mod machine;
mod oracle;
mod recording;
mod untorn;
