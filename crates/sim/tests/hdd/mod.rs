//! The shipped disks in virtual time: their figures beside published ones, and the field reports about such
//! disks.
//!
//! What stands for a host here (`hosts`) knows commands and answers only, and what stands for a drive is the
//! shipped model, which knows nothing of hosts.
mod article_d;
mod article_e;
mod figures;
mod hosts;
mod shipped;
