//! Guards against a hang, unbounded memory, and a partial result that looks complete: after any failure of a
//! host the others continue, and the result names the host.

use plumb_block::{Bytes, Nanos};
use plumb_fleet::controller::{Controller, Phase};
use plumb_fleet::{TaskResult, merge};

use crate::world::{Fault, HEARTBEAT, PREPARE_WITHIN, World, document, in_phase, load, outcome};

/// Runs a load on eight hosts, the third of which has a fault.
fn world_with(fault: Fault) -> World {
    let mut world = World::new(5, 8, vec![outcome(1, 200)]);
    world.hosts[2].fault = fault;
    world.run();
    world
}

#[test]
fn a_host_that_is_lost_is_named_and_the_others_go_on() {
    let cases = [
        (Fault::Killed, "ended by signal 9"),
        (Fault::HalfOpen, "it was silent for 5."),
        (Fault::Garbage, "it does not speak plumb's protocol: `"),
        (Fault::OtherVersion, "plumb 2 is there, 1 here"),
        (Fault::Drips, "it was silent for 5."),
        (Fault::NeverReady, "it was not ready within 600 s"),
        (Fault::Endless, "it had not ended 70 s after its start"),
        (Fault::ReadyAgain, "sent an answer that was not asked for"),
        (Fault::ReadyAndBegun, "it had not ended 70 s after its start"),
        (Fault::HelloAgain, "sent an answer that was not asked for"),
        (Fault::BegunLate, "reports a start in the future"),
        (Fault::BegunEarly, "sent an answer that was not asked for"),
        (Fault::FiguresEarly, "sent an answer that was not asked for"),
    ];
    for (fault, expected) in cases {
        let mut world = world_with(fault);
        assert_eq!(in_phase(&world, Phase::Done), 7, "{fault:?}");
        let document = merge::document(&mut merge::answers(&mut world.controller));
        assert!(document.partial, "{fault:?}");
        let lost = &document.hosts[2];
        assert!(!lost.ok && lost.because.as_ref().unwrap().contains(expected), "{fault:?}: {lost:?}");
        assert!(document.incomplete_because.unwrap().starts_with("host2: "), "{fault:?}");
        // Figures of the lost host are reported separately; the total covers complete hosts only.
        assert_eq!(document.total.unwrap().read.ios, 1400, "{fault:?}");
        let before = document.unfinished.map(|sides| sides.read.ios);
        assert!(matches!(before, None | Some(200)), "{fault:?}: {before:?}");
    }
}

#[test]
fn an_agent_that_loses_its_controller_ends_within_two_heartbeats_and_a_second() {
    let mut world = world_with(Fault::HalfOpen);
    let cut = world.hosts[2].started.unwrap() + Nanos::secs(1);
    let lost = world.now;
    world.outlive_controller();
    for (number, host) in world.hosts.iter().enumerate() {
        let (ended, because) = host.ended.clone().unwrap();
        assert!(because.is_some_and(|because| because.contains("silent")), "host {number}");
        // The last ping may have arrived just before the cut; the agent checks its clock every 50 ms.
        let from = if number == 2 { cut } else { lost };
        assert!(
            ended <= from + HEARTBEAT * 2 + Nanos::secs(1) + Nanos::millis(60),
            "host {number}: {ended} {from}"
        );
    }
}

#[test]
fn a_controller_that_is_kept_from_its_work_gives_nobody_up_and_keeps_the_leases() {
    let mut world = World::new(11, 8, vec![outcome(1, 20)]);
    world.controller.begin(|_| Some(load()), None);
    world.turn_until(|controller: &Controller| controller.started_at().is_some());
    world.stall(Nanos::millis(3_500));
    assert_eq!(in_phase(&world, Phase::Missing), 0);
    world.turn_until(Controller::is_done);
    assert_eq!(in_phase(&world, Phase::Done), 8);
    assert!(world.hosts.iter().all(|host| host.ended.is_none()), "a lease has ended");
    // Silence is judged by what the controller has read, whatever its clock shows, and unread data does not
    // keep leases from being renewed.
    let looked = world.now;
    for second in 1..=30 {
        let now = looked + Nanos::secs(second);
        world.controller.tick(now, looked);
        assert!(!world.controller.output(0).is_empty(), "nothing is sent after {second} s");
        world.controller.output(0).clear();
    }
    world.controller.tick(world.now + Nanos::secs(60), world.now);
    assert_eq!(in_phase(&world, Phase::Missing), 0);
}

#[test]
fn a_result_that_was_cut_short_is_not_whole_whatever_it_found() {
    let mut world = World::new(12, 2, vec![outcome(1, 20)]);
    world.because = Some("interrupted".to_owned());
    world.run();
    let document = merge::document(&mut merge::answers(&mut world.controller));
    assert!(document.partial && document.hosts.iter().all(|host| !host.ok), "{document:?}");
    assert_eq!(document.incomplete_because.as_deref(), Some("host0, host1: interrupted"));
}

#[test]
fn what_a_host_moved_until_it_was_lost_is_the_share_of_nobody() {
    let mut world = world_with(Fault::Endless);
    let mut answers = merge::answers(&mut world.controller);
    let step = merge::scale_step(&answers, None);
    assert_eq!((step.hosts, step.measured, step.iops), (8, 7, 140.0));
    let mut document = merge::document(&mut answers);
    plumb_report::verdict::conclude_fleet(&mut document, &[]);
    assert!(document.headline.starts_with("7 of 8 hosts reached 140 IOPS "), "{}", document.headline);
    assert_eq!(document.each_bytes_per_second(), 200.0 * 8192.0 / 10.0);
    // Sentence and table agree, and figures of the lost host are labelled separately.
    let [total, lost] =
        [&document.total, &document.unfinished].map(|of| of.as_ref().unwrap().application.iops);
    let of = |ok: bool| document.hosts.iter().filter(move |host| host.ok == ok);
    let sum = |ok| of(ok).map(|host| host.total.as_ref().unwrap().application.iops).sum::<f64>();
    assert_eq!((total, lost), (sum(true), sum(false)));
    let shown =
        plumb_report::render(&document, plumb_report::Format::Terminal, plumb_report::Style::PLAIN).unwrap();
    assert!(shown.contains("the others, until they ended"), "{shown}");
    // If no host completed, the interim figures are shown.
    document.hosts.iter_mut().for_each(|host| host.ok = false);
    document.unfinished = document.total.take();
    plumb_report::verdict::conclude_fleet(&mut document, &[]);
    assert!(
        document.headline.starts_with("0 of 8 hosts did what they were asked for; 8 reached 140 IOPS"),
        "{}",
        document.headline
    );
}

#[test]
fn hosts_that_never_end_are_told_to_and_then_given_up() {
    let mut world = World::new(6, 4, vec![outcome(1, 20)]);
    world.hosts[1].fault = Fault::Endless;
    world.length = Nanos::secs(3);
    world.controller.begin(|number| (number == 1).then(load), None);
    world.turn_until(|controller: &Controller| controller.hosts().any(|host| host.figures.is_some()));
    world.controller.stop(world.now);
    let told = world.now;
    world.turn_until(Controller::is_done);
    assert_eq!(world.seen()[1].because, Some("it did not end when it was told to"));
    assert!(world.now <= told + Nanos::secs(31));
}

#[test]
fn what_lasts_as_long_as_it_takes_is_given_up_where_it_comes_no_further() {
    // The endless host repeats the same figures while its clock advances.
    let mut world = World::new(13, 2, vec![outcome(1, 20)]);
    world.hosts[1].fault = Fault::Endless;
    world.controller.begin(|_| Some(load()), None);
    world.turn_until(Controller::is_done);
    assert_eq!(world.seen()[1].because, Some("it made no progress within 600 s (--prepare-timeout)"));
    assert!(world.now >= Nanos::secs(1000) + PREPARE_WITHIN);
}

#[test]
fn a_host_that_reads_nothing_is_given_up_before_what_it_is_sent_piles_up() {
    let mut world = World::new(14, 1, Vec::new());
    world.controller.begin(|_| Some(load()), None);
    world.turn_until(|controller: &Controller| controller.started_at().is_some());
    let waiting = world.controller.output(0);
    waiting.resize(3 << 20, 0);
    world.controller.tick(world.now, world.now);
    assert_eq!(world.seen()[0].because, Some("it does not read the messages that it is sent"));
    assert!(world.controller.output(0).is_empty());
}

#[test]
fn what_a_host_says_of_its_failure_is_as_long_as_a_person_reads() {
    let long = "a".repeat(1 << 19);
    let mut world = World::new(15, 1, vec![outcome(1, 20)]);
    world.because = Some(long.clone());
    world.run();
    assert_eq!(world.seen()[0].result.unwrap().because.as_ref().unwrap().len(), 403);
    let mut world = World::new(15, 1, Vec::new());
    world.controller.begin(|_| Some(load()), None);
    world.turn_until(|controller: &Controller| controller.started_at().is_some());
    let mut frame = Vec::new();
    plumb_state::frame::encode(&std::collections::HashMap::from([(long, 1)]), &mut frame);
    world.controller.receive(0, &frame, world.now);
    let because = world.seen()[0].because.unwrap();
    assert!(because.contains("does not know: unknown variant `aaaa") && because.len() < 700, "{because}");
}

#[test]
fn a_host_that_hangs_up_within_a_message_is_told_from_one_that_hangs_up_after_it() {
    let ends: [(&[u8], &str); 2] = [
        (b"\0\0\0\x09\"Re", "the connection ended within a message, of which 7 bytes had arrived: it fell"),
        (b"", "the connection ended: it fell"),
    ];
    for (sent, expected) in ends {
        let mut world = World::new(16, 1, vec![outcome(1, 20)]);
        world.controller.begin(|_| Some(load()), None);
        world.turn_until(|controller: &Controller| controller.started_at().is_some());
        world.controller.receive(0, sent, world.now);
        world.controller.closed(0, "it fell");
        assert_eq!(world.seen()[0].because, Some(expected));
    }
}

#[test]
fn a_result_counts_that_is_whole_and_can_be_true() {
    type Spoil = fn(&mut TaskResult);
    let cases: [(Spoil, &str); 10] = [
        (|result| result.outcome = None, "its result has no figures"),
        (|result| result.document = None, "its result has no document"),
        (|result| result.document = Some("hello".to_owned()), "no document of the schema plumb/load/1"),
        (|result| result.document = Some("{}".to_owned()), "no document of the schema plumb/load/1"),
        (
            |result| {
                let of_another = document().replace("plumb/load/1", "plumb/survey/1");
                result.document = Some(of_another);
            },
            "no document of the schema plumb/load/1",
        ),
        (|result| result.lasted = Some(Nanos(u64::MAX)), "figures that are impossible"),
        (|result| result.outcome.as_mut().unwrap().length = Nanos::secs(71), "figures that are impossible"),
        (
            |result| result.outcome.as_mut().unwrap().read.bytes = Bytes(1 << 49),
            "figures that are impossible",
        ),
        (|result| result.outcome.as_mut().unwrap().write.bytes = Bytes(1), "figures that are impossible"),
        (|result| result.exit = 3, "plumb ended there with exit code 3"),
    ];
    for (spoil, expected) in cases {
        let mut world = World::new(16, 3, vec![outcome(1, 200)]);
        world.spoil = Some(spoil);
        world.run();
        let document = merge::document(&mut merge::answers(&mut world.controller));
        let host = &document.hosts[2];
        assert!(document.partial && !host.ok, "{expected}: {host:?}");
        assert!(host.because.as_ref().unwrap().contains(expected), "{expected}: {host:?}");
        assert_eq!(document.total.unwrap().read.ios, 400, "{expected}");
    }
}

#[test]
fn the_row_of_a_host_is_that_of_its_distributions_whatever_its_document_says() {
    let mut world = World::new(17, 3, vec![outcome(1, 200)]);
    world.spoil = Some(|result| {
        let mut document: serde_json::Value = serde_json::from_str(&document()).unwrap();
        document["total"]["application"]["iops"] = serde_json::json!(1e308);
        document["total"]["read"]["bytes_per_second"] = serde_json::json!(1e308);
        result.document = Some(document.to_string());
    });
    world.run();
    let document = merge::document(&mut merge::answers(&mut world.controller));
    let rows: Vec<f64> =
        document.hosts.iter().map(|host| host.total.as_ref().unwrap().application.iops).collect();
    assert_eq!(rows, [20.0; 3]);
    assert_eq!(document.total.unwrap().application.iops, 60.0);
}

#[test]
fn leaving_says_good_bye_to_all() {
    let mut world = World::new(9, 20, vec![outcome(1, 20)]);
    world.run();
    world.controller.leave(world.now);
    world.turn_until(Controller::has_left);
    // The connections stay open here, so launchers are given up after a while; the agents exited by
    // themselves.
    assert!(world.hosts.iter().all(|host| matches!(&host.ended, Some((_, None)))));
}
