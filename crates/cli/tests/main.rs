//! The tests of this crate from outside. One program, so that it is linked once: a scenario a file, and what they share.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod blocks_of_any_length;
mod cache_changes;
mod cache_documents;
mod cache_killed;
mod cache_refusals;
mod cache_support;
mod cache_unit;
mod check_document;
mod check_ends;
mod check_places;
mod check_simulated;
#[path = "../../report/tests/closed_schema.rs"]
mod closed_schema;
mod common;
mod compare;
mod diskspd_command;
mod drive_clients;
mod drive_cuts;
mod drive_documents;
mod drive_ends;
mod drive_killed;
mod drive_nbd;
mod drive_power;
mod drive_programs;
mod drive_refusals;
mod drive_support;
mod drive_tls;
mod drive_ublk;
mod fio_command;
mod first_tries;
mod fleet;
mod imported_results;
mod load_basics;
mod load_faults;
mod load_killed;
mod load_paths;
mod load_refusals;
mod load_reports;
mod load_simulated;
mod load_support;
mod observe;
mod policy_documents;
mod policy_refusals;
mod prove_app;
mod prove_campaign;
mod prove_trace;
mod readme;
mod sqlio_command;
mod study;
mod survey_and_report;
mod trace_replay;
