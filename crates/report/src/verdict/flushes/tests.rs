//! Rules about flushes, each with and without a verdict, on checks. Those about loads are tested with the
//! other rules.

use plumb_block::SyncMethod;
use plumb_measure::{Attribution, FlushesOf};

use super::*;
use crate::document::RunDocument;
use crate::fixture;

fn dropped(document: &RunDocument) -> Option<Verdict> {
    super::dropped(&Evidence::new(document))
}

fn none_seen(document: &RunDocument) -> Option<Verdict> {
    super::none_seen(&Evidence::new(document))
}

fn missing(document: &RunDocument) -> Option<Verdict> {
    super::missing(&Evidence::new(document))
}

/// Returns a document whose devices received no flush.
fn without_flushes(name: &str) -> RunDocument {
    let mut document = fixture::document(name);
    for storage in document.targets.iter_mut().filter_map(|target| target.sides.storage.as_mut()) {
        storage.flushes = Some(0);
        storage.devices.iter_mut().for_each(|device| device.flushes = Some(0));
    }
    document
}

#[test]
fn no_flush_on_a_path_that_forwards_is_a_drop() {
    let finding = dropped(&without_flushes("virtual-machine")).unwrap();
    assert_eq!(finding.severity, Severity::Danger);
    assert!(finding.sentence.contains("125,310 durable writes"), "{}", finding.sentence);
    assert!(none_seen(&without_flushes("virtual-machine")).is_none(), "the same is said twice");
}

#[test]
fn flushes_that_arrive_are_no_finding() {
    let document = fixture::virtual_machine();
    assert!(dropped(&document).is_none() && none_seen(&document).is_none() && missing(&document).is_none());
}

#[test]
fn one_skipped_member_of_an_array_is_found() {
    let mut document = fixture::document("raid-eight-disks");
    assert!(dropped(&document).unwrap().sentence.starts_with("sde held"));
    for layer in document.path.as_mut().unwrap().layers.iter_mut().filter(|layer| layer.name == "sde") {
        layer.cache = Cache::None;
    }
    assert!(dropped(&document).is_none());
}

#[test]
fn write_through_explains_that_no_flush_is_seen() {
    let document = fixture::document("hard-drive");
    assert!(dropped(&document).is_none());
    let finding = none_seen(&document).unwrap();
    assert_eq!(finding.severity, Severity::Info);
    assert!(finding.sentence.contains("sda says"), "{}", finding.sentence);
}

#[test]
fn a_layer_that_does_not_say_is_a_warning() {
    let mut document = without_flushes("virtual-machine");
    document.path.as_mut().unwrap().layers[2].flush = Flush::Unknown;
    assert!(dropped(&document).is_none());
    assert_eq!(none_seen(&document).unwrap().severity, Severity::Warning);
}

#[test]
fn a_device_that_counts_flushes_as_empty_reads_is_not_accused() {
    let mut document = without_flushes("virtual-machine");
    for sides in document.targets.iter_mut().map(|target| &mut target.sides) {
        let operations = sides.application.operations;
        sides.storage.as_mut().unwrap().devices[0].reads = operations;
    }
    assert!(dropped(&document).is_none());
    assert_eq!(none_seen(&document).unwrap().severity, Severity::Info);
}

#[test]
fn native_fua_needs_no_flush() {
    let mut document = without_flushes("virtual-machine");
    document
        .targets
        .retain(|target| document.spans[target.span].jobs[0].method == Some(SyncMethod::DirectDsync));
    assert!(dropped(&document).is_some());
    let disk = document.path.as_mut().unwrap().layers.iter_mut().find(|layer| layer.name == "vda").unwrap();
    disk.fua = Fua::Native;
    assert!(dropped(&document).is_none() && none_seen(&document).is_none());
}

#[test]
fn counters_that_miss_the_direct_loads_accuse_nobody() {
    let mut document = without_flushes("virtual-machine");
    for storage in document.targets.iter_mut().filter_map(|target| target.sides.storage.as_mut()) {
        (storage.write_bytes, storage.read_bytes) = (0, 0);
    }
    assert!(dropped(&document).is_none());
    let finding = none_seen(&document).unwrap();
    assert_eq!(finding.severity, Severity::Info);
    assert!(finding.sentence.contains("did not see the direct loads"), "{}", finding.sentence);
    // Counters that counted other bytes work, so missing bytes came from memory.
    let storage = document.targets[0].sides.storage.as_mut().unwrap();
    storage.write_bytes = 4096;
    assert!(!none_seen(&document).is_some_and(|finding| finding.sentence.contains("count nothing")));
}

#[test]
fn a_path_that_drops_flushes_does_so_whatever_the_counters_show() {
    let mut document = without_flushes("virtual-machine");
    for storage in document.targets.iter_mut().filter_map(|target| target.sides.storage.as_mut()) {
        (storage.write_bytes, storage.read_bytes) = (0, 0);
    }
    document.path.as_mut().unwrap().layers[2].flush = Flush::Dropped;
    assert!(dropped(&document).is_some() && none_seen(&document).is_none());
}

/// Sets the attribution of the flushes of all storage sides.
fn attribute(document: &mut RunDocument, attribution: &Attribution) {
    for storage in document.targets.iter_mut().filter_map(|target| target.sides.storage.as_mut()) {
        storage.attribution = Some(attribution.clone());
    }
}

#[test]
fn flushes_of_all_programs_prove_only_that_there_were_no_more() {
    let mut document = fixture::virtual_machine();
    attribute(&mut document, &Attribution::default());
    assert!(dropped(&document).is_none() && missing(&document).is_none());
    let said = crate::Headline::new(&document).meaning;
    assert!(said.contains("flushes of all programs: at most ") && said.contains(" of this run."), "{said}");
    assert!(!said.contains("were seen as"), "{said}");
    // Fewer than the syncs of one writer are too few, whoever requested them.
    document.targets[0].sides.storage.as_mut().unwrap().flushes = Some(20_000);
    let said = missing(&document).unwrap().sentence;
    assert!(said.contains("only 20,000 flushes by all programs, at most 20,000 of this run:"), "{said}");
    let sides = &document.targets[0].sides;
    assert_eq!(sides.flushes_per_sync(), None, "of all programs");
    document.targets[0].sides.storage.as_mut().unwrap().flushes = Some(1);
    let said = missing(&document).unwrap().sentence;
    assert!(said.contains("only 1 flush by all programs"), "{said}");
    let mut none = without_flushes("virtual-machine");
    attribute(&mut none, &Attribution::default());
    assert!(dropped(&none).is_some());
}

#[test]
fn traced_flushes_are_those_that_count() {
    let mut document = fixture::virtual_machine();
    let traced = Attribution { flushes: FlushesOf::Traced, own_flushes: Some(0), ..Attribution::default() };
    attribute(&mut document, &traced);
    assert!(dropped(&document).is_some(), "the flushes that were counted are another program's");
    attribute(&mut document, &Attribution { journal_flushes: Some(60_000), ..traced });
    assert!(dropped(&document).is_none(), "the journal may flush for a sync");
}

#[test]
fn a_volatile_device_that_was_not_written_to_accuses_nobody() {
    let mut document = without_flushes("virtual-machine");
    let devices = document.targets.iter_mut().filter_map(|target| target.sides.storage.as_mut());
    devices.for_each(|storage| storage.devices[0].writes = 0);
    assert!(dropped(&document).is_none());
}

#[test]
fn a_loop_device_over_a_drive_without_a_cache_accuses_nobody() {
    let mut document = without_flushes("virtual-machine");
    let disk = document.path.as_mut().unwrap().layers.iter().position(|layer| layer.name == "vda").unwrap();
    let layers = &mut document.path.as_mut().unwrap().layers;
    (layers[disk].cache, layers[disk].flush) = (Cache::None, Flush::Absorbed);
    let above = &mut layers[disk - 1];
    (above.kind, above.cache) = (LayerKind::Loop, Cache::Volatile);
    assert!(dropped(&document).is_none());
    assert_eq!(none_seen(&document).unwrap().severity, Severity::Info);
}

/// Verifies that data which a cache writes to a volatile backing device, and flushes later by itself, does
/// not count as a dropped flush if the log of the cache needs no flush.
#[test]
fn a_cache_whose_log_need_not_be_flushed_accuses_nobody() {
    let over = |mut document: RunDocument, flush: Flush| {
        let layers = &mut document.path.as_mut().unwrap().layers;
        let disk = layers.iter().position(|layer| layer.name == "vda").unwrap();
        let cache = Layer {
            kind: LayerKind::WriteBackCache,
            name: "plumb cache tank".to_owned(),
            cache: Cache::Protected,
            flush,
            below: vec!["vda".to_owned()],
            ..layers[disk].clone()
        };
        layers[disk - 1].below = vec![cache.name.clone()];
        layers.insert(disk, cache);
        document
    };
    let silent = || without_flushes("virtual-machine");
    assert!(dropped(&over(silent(), Flush::Forwarded)).is_some());
    let cause = dropped(&over(silent(), Flush::Dropped)).unwrap().evidence.concat();
    assert!(cause.contains("plumb cache tank drops flushes"), "{cause}");
    let absorbed = over(silent(), Flush::Absorbed);
    assert!(dropped(&absorbed).is_none());
    let seen = none_seen(&absorbed).unwrap();
    assert_eq!(seen.severity, Severity::Info);
    assert!(seen.sentence.contains("the log of plumb cache tank is sent none"), "{}", seen.sentence);
    let mut some = fixture::virtual_machine();
    some.targets[0].sides.storage.as_mut().unwrap().flushes = Some(20_000);
    assert!(missing(&over(some.clone(), Flush::Forwarded)).is_some());
    assert!(missing(&over(some.clone(), Flush::Absorbed)).is_none());
    let with_log = |document: RunDocument, of_log: Flush| {
        let mut document = over(document, Flush::Forwarded);
        let layers = &mut document.path.as_mut().unwrap().layers;
        let disk = layers.iter().find(|layer| layer.name == "vda").unwrap();
        let log = Layer { name: "nvme0n1".to_owned(), cache: Cache::None, flush: of_log, ..disk.clone() };
        let cache = layers.iter_mut().find(|layer| layer.kind == LayerKind::WriteBackCache).unwrap();
        cache.below.insert(0, log.name.clone());
        layers.push(log);
        document
    };
    for (of_log, is_found) in [(Flush::Forwarded, true), (Flush::Absorbed, false)] {
        assert_eq!(dropped(&with_log(silent(), of_log)).is_some(), is_found, "{of_log:?}");
        assert_eq!(missing(&with_log(some.clone(), of_log)).is_some(), is_found, "{of_log:?}");
    }
}

/// A cache flushes its backing device after destaging, not at each sync.
#[test]
fn a_backing_device_that_was_not_flushed_while_the_log_was_is_no_finding() {
    let mut document = fixture::document("raid-eight-disks");
    assert!(dropped(&document).is_some());
    let layers = &mut document.path.as_mut().unwrap().layers;
    layers.iter_mut().find(|layer| layer.name == "md0").unwrap().kind = LayerKind::WriteBackCache;
    assert!(dropped(&document).is_none());
}

#[test]
fn one_path_of_several_need_not_be_flushed() {
    let mut document = fixture::document("raid-eight-disks");
    for layer in document.path.as_mut().unwrap().layers.iter_mut().filter(|layer| layer.name == "md0") {
        layer.kind = LayerKind::DmMultipath;
    }
    assert!(dropped(&document).is_none());
}

#[test]
fn few_syncs_prove_nothing() {
    let mut document = without_flushes("virtual-machine");
    for target in &mut document.targets {
        (target.sides.sync.ios, target.sides.write.ios) = (9, 9);
    }
    assert!(dropped(&document).is_none() && none_seen(&document).is_none());
}

#[test]
fn one_writers_syncs_share_no_flush() {
    let mut document = fixture::virtual_machine();
    document.targets[0].sides.storage.as_mut().unwrap().flushes = Some(20_000);
    let finding = missing(&document).unwrap();
    assert_eq!(finding.severity, Severity::Warning);
    assert!(
        finding.sentence.contains("synced 52,410 times") && finding.sentence.contains("only 20,000"),
        "{}",
        finding.sentence
    );
}

/// Simulates `asked` syncs by the rule of block/blk-flush.c, with up to `most` waiting: a flush command
/// serves the syncs waiting when it is sent; later ones wait for the next. Returns the number of commands.
fn flush_commands(asked: u64, most: u64, arrivals: &[u64]) -> u64 {
    let (mut left, mut pending, mut running, mut commands) = (asked, 0, 0, 0);
    for arriving in arrivals.iter().cycle() {
        let coming = (*arriving).min(left).min(most - pending - running);
        left -= coming;
        pending += coming;
        // The running command completes, with all syncs that it serves. Later ones go with the next.
        (running, pending) = (pending, 0);
        commands += u64::from(running > 0);
        if left == 0 && pending == 0 {
            return commands;
        }
    }
    commands
}

/// Load of writes with O_DSYNC, `most` of them in flight, to a device without FUA.
fn in_flight_writes(most: u64, asked: u64, flushes: u64) -> RunDocument {
    let mut document = fixture::load("side-by-side");
    document.targets.remove(0);
    let job = &mut document.spans[0].jobs[1];
    (job.threads, job.flush, job.durable_write_every) = (1, None, Some(1));
    let target = &mut document.targets[0];
    target.device.fua_native = Some(false);
    target.sides.in_flight_max = most;
    (target.sides.sync.ios, target.sides.write.ios) = (0, asked);
    let storage = target.sides.storage.as_mut().unwrap();
    storage.flushes = Some(flushes);
    storage.devices[0].flushes = Some(flushes);
    document
}

#[test]
fn flushes_that_the_block_layer_merges_are_not_missing() {
    let arrivals: [&[u64]; 5] = [&[1], &[64], &[1, 64, 3], &[0, 7, 2, 9], &[5, 5, 5, 1, 0, 0, 30]];
    for most in 1..=32 {
        for (asked, arrivals) in
            [100, 997, 5000].into_iter().flat_map(|asked| arrivals.map(|each| (asked, each)))
        {
            let commands = flush_commands(asked, most, arrivals);
            let case = format!("{most} in flight, {asked} syncs, {arrivals:?}, {commands} flushes");
            assert!(missing(&in_flight_writes(most, asked, commands)).is_none(), "{case}");
            // A tenth fewer than the minimum that can serve them.
            let too_few = asked.div_ceil(most) * 9 / 10 - 1;
            let finding = missing(&in_flight_writes(most, asked, too_few));
            assert_eq!(finding.is_some(), too_few > 0, "{case}, {too_few} are too few");
        }
    }
}

#[test]
fn the_bound_of_several_in_flight_is_said() {
    let finding = missing(&in_flight_writes(8, 8000, 900)).unwrap();
    assert_eq!(
        finding.sentence,
        "At most 8 syncs waited at the same time, so 8,000 of them need at least 1,000 flushes, but the devices were \
         handed only 900 flushes: some syncs sent none."
    );
    let merged = super::merged(&Evidence::new(&in_flight_writes(8, 8000, 1000))).unwrap();
    assert_eq!(merged.severity, Severity::Info);
    let unknown = in_flight_writes(0, 8000, 900);
    assert!(missing(&unknown).is_none(), "how many were in flight is not known");
}
