//! Tests of the shipped disks in virtual time: their figures against published ones, and the field reports
//! about such disks.
//!
//! The models of hosts (`hosts`) know only commands and answers; the drives are the shipped models, which
//! know nothing of hosts.
mod article_d;
mod article_e;
mod figures;
mod hosts;
mod shipped;
