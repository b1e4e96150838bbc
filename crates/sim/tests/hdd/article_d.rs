//! The disk with a media cache, with its write cache on and off.
//!
//! The drive is the shipped model. The number of runs that the media cache stages was chosen to match
//! measurements under a Ceph OSD (`plumb study d`); the two loads here were not used for that.
use crate::hdd::hosts::{Quantiles, appends, scattered};
use plumb_sim::model::Model;

use crate::hdd::shipped::{drive, sectors};

#[test]
fn loads_that_nothing_was_fitted_to_come_out_plausible() {
    let disk = Model::named("he8-media-cache").unwrap();
    println!("{}", Quantiles::HEAD);
    let mut means = Vec::new();
    for wce in [true, false] {
        let state = if wce { "on" } else { "off" };
        let log = Quantiles::from_times(&appends(&mut drive(&disk, wce), wce, sectors(&disk) / 4, 4000));
        println!("{}", log.line(&format!("etcd log, 2300 B and fdatasync, cache {state}")));
        let random = Quantiles::from_times(&scattered(&mut drive(&disk, wce), wce, sectors(&disk), 8000, 11));
        println!("{}", random.line(&format!("random 4 KiB O_SYNC, cache {state}")));
        means.push((log.p50, random.mean));
    }
    println!(
        "{:<42} {:>8.3} on, {:.3} off (Ultrastar 7K6000, serverfault.com 857271)",
        "  published mean", 10.30, 3.77
    );
    let [(log_on, random_on), (log_off, random_off)] = means[..] else { panic!("two states") };
    // An append returns to its position one revolution later, which the media cache avoids.
    assert!((7.0..9.5).contains(&log_on), "{log_on} ms");
    assert!(log_off < 0.5, "{log_off} ms");
    // Measured on another drive of the same maker and generation: only the order of magnitude, and the faster
    // state.
    assert!((10.3 / 2.0..10.3 * 2.0).contains(&random_on), "{random_on} ms");
    assert!((3.77 / 2.0..3.77 * 2.0).contains(&random_off), "{random_off} ms");
    assert!(random_on > 1.5 * random_off);
}
