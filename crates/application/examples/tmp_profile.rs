//! x
use plumb_application::*;
use plumb_block::*;
use std::path::Path;
use std::sync::atomic::AtomicBool;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    for typed in &a[3..] {
        let (p, v) = find(typed).unwrap();
        let open = |d: &Path| -> plumb_block::Result<Box<dyn FileStore>> {
            Ok(Box::new(plumb_linux::DirectoryStore::open(d)?))
        };
        let place = Place::Directory { path: a[1].clone().into(), free: None, open: &open };
        let secs: f64 = a[2].parse().unwrap();
        let limits = Limits { duration: Some(Nanos::from_secs_f64(secs)), seed: 1, ..Default::default() };
        let t = std::time::Instant::now();
        let m = run(p, v, &place, &limits, &RealClock::start(), &AtomicBool::new(false), &mut |_| {});
        match m {
            Err(e) => println!("{typed} ERR {e:?} {e}"),
            Ok(m) => {
                let h = |h: &plumb_measure::Histogram| {
                    format!("n={} p50={:?} p99={:?}", h.count(), h.at_per_mille(500), h.at_per_mille(990))
                };
                println!(
                    "{typed:24} {:.0} tps len {} wall {:.1?} s/t {:.2?} tx {} durable {}",
                    m.transactions_per_second().unwrap_or(0.),
                    m.outcome.length,
                    t.elapsed(),
                    m.syncs_per_transaction().unwrap_or(0.),
                    h(&m.transactions),
                    h(&m.outcome.durable)
                );
                for (n, x) in &m.operations {
                    print!(" {n}:{}/{:?}", x.count(), x.at_per_mille(500).unwrap())
                }
                println!();
                for n in &m.notes {
                    println!("   note: {n}")
                }
                for j in judge(p, &m) {
                    println!("   {:?} {}", j.standing, j.sentence)
                }
            }
        }
    }
}
