//! Whatever goes wrong with a host, the others go on, memory stays bounded, and the result names the host: guards against a hang and
//! against a partial result that looks whole.

use plumb_block::Nanos;
use plumb_fleet::controller::{Controller, Phase};
use plumb_fleet::merge;

use crate::world::{Fault, HEARTBEAT, World, in_phase, outcome};

/// Eight hosts, the third of which has a fault.
fn with(fault: Fault) -> World {
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
        (Fault::Garbage, "does not speak as an agent does"),
        (Fault::OtherVersion, "plumb 2 is there, 1 here"),
    ];
    for (fault, expected) in cases {
        let mut world = with(fault);
        assert_eq!(in_phase(&world, Phase::Done), 7, "{fault:?}");
        let document = merge::document(&merge::answers(&mut world.controller));
        assert!(document.partial, "{fault:?}");
        let lost = &document.hosts[2];
        assert!(!lost.ok && lost.because.as_ref().unwrap().contains(expected), "{fault:?}: {lost:?}");
        assert!(document.incomplete_because.unwrap().starts_with("host2: "), "{fault:?}");
        // What it had sent until then is kept.
        let ios = document.total.unwrap().read.ios;
        assert!(ios == 1400 || ios == 1600, "{fault:?}: {ios}");
    }
}

#[test]
fn an_agent_that_loses_its_controller_ends_within_two_heartbeats_and_a_second() {
    let mut world = with(Fault::HalfOpen);
    let cut = world.hosts[2].started.unwrap() + Nanos::secs(1);
    let lost = world.now;
    world.outlive_controller();
    for (number, host) in world.hosts.iter().enumerate() {
        let (ended, because) = host.ended.clone().unwrap();
        assert!(because.is_some_and(|because| because.contains("silent")), "host {number}");
        // The last ping may have arrived just before the cut; the agent looks at its clock every 50 ms.
        let from = if number == 2 { cut } else { lost };
        assert!(
            ended <= from + HEARTBEAT * 2 + Nanos::secs(1) + Nanos::millis(60),
            "host {number}: {ended} {from}"
        );
    }
}

#[test]
fn hosts_that_never_end_are_told_to_and_then_given_up() {
    let mut world = World::new(6, 4, vec![outcome(1, 20)]);
    world.hosts[1].fault = Fault::Endless;
    world.length = Nanos::secs(3);
    let task = plumb_fleet::Task::Command { arguments: Vec::new() };
    world.controller.begin(|number| (number == 1).then(|| task.clone()));
    world.turn_until(|controller: &Controller| controller.hosts().any(|host| host.figures.is_some()));
    world.controller.stop(world.now);
    let told = world.now;
    world.turn_until(Controller::is_done);
    assert_eq!(world.seen()[1].because, Some("it did not end when it was told to"));
    assert!(world.now <= told + Nanos::secs(31));
}

#[test]
fn leaving_says_good_bye_to_all() {
    let mut world = World::new(9, 20, vec![outcome(1, 20)]);
    world.run();
    world.controller.leave(world.now);
    world.turn_until(Controller::has_left);
    // Nobody closed the connections here, so launchers are given up after a while; the agents had ended by themselves.
    assert!(world.hosts.iter().all(|host| matches!(&host.ended, Some((_, None)))));
}
