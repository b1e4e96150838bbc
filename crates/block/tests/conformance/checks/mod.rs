//! The checks, one function each: every clause of the contract has at least one.

mod basics;
mod durability;
mod failures;
mod refusals;
mod visibility;
mod zeroing;

use super::Check;

/// Every check, by name, in the order in which they run.
pub(super) const ALL: [Check; 21] = [
    ("info-is-sane", basics::info_is_sane),
    ("extents-cover-the-range", basics::extents_cover_the_range),
    ("every-tag-comes-back-once", basics::every_tag_comes_back_once),
    ("payloads-come-back", basics::payloads_come_back),
    ("patterns-are-their-bytes", basics::patterns_are_their_bytes),
    ("a-full-queue-gives-the-request-back", refusals::a_full_queue_gives_the_request_back),
    ("nonsense-fails-with-einval", refusals::nonsense_fails_with_einval),
    ("writes-are-visible-on-every-queue", visibility::writes_are_visible_on_every_queue),
    ("reads-are-never-stale", visibility::reads_are_never_stale),
    ("discarded-blocks-read-as-allowed", zeroing::discarded_blocks_read_as_allowed),
    ("written-zeroes-read-as-zeroes", zeroing::written_zeroes_read_as_zeroes),
    ("zeroes-without-holes-keep-their-space", zeroing::zeroes_without_holes_keep_their_space),
    ("a-flush-covers-every-queue", durability::a_flush_covers_every_queue),
    ("fua-is-durable", durability::fua_is_durable),
    ("nothing-older-replaces-the-durable", durability::nothing_older_replaces_the_durable),
    ("blocks-do-not-tear", durability::blocks_do_not_tear),
    ("any-cut-leaves-an-allowed-state", durability::any_cut_leaves_an_allowed_state),
    ("a-failed-flush-latches", failures::a_failed_flush_latches),
    ("past-its-deadline-a-request-is-unknown", failures::past_its_deadline_a_request_is_unknown),
    ("a-dropped-queue-frees-its-buffers", failures::a_dropped_queue_frees_its_buffers),
    ("an-idle-queue-does-not-wait", basics::an_idle_queue_does_not_wait),
];
