//! Experiments on synthetic blocks with a known ratio: with drift, with correlated values, with heavy tails.
//! Guards against intervals that cover less than they state, and against outcomes that are wrong too often.
//!
//! `PLUMB_SERIES` is the number of each kind (soak: 10,000), `PLUMB_SEED` the first seed. No two kinds share
//! a seed, so that a deviation by chance in one does not occur in all.

use plumb_compare::statistics::reach;
use plumb_compare::{Design, Judgement, PRACTICE, Spread, Terms, judge_pairs};
use plumb_report::document::comparison::Outcome;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Natures of blocks.
const NATURES: [Nature; 4] = [
    Nature { drift: 0.0, memory: 0.0, tails: 0.0 },
    Nature { drift: 1.5, memory: 0.0, tails: 0.0 },
    Nature { drift: 0.0, memory: 0.7, tails: 0.0 },
    Nature { drift: 0.5, memory: 0.5, tails: 0.05 },
];

#[derive(Debug, Clone, Copy)]
struct Nature {
    /// Drift from the first block to the last, as a logarithm.
    drift: f64,
    /// Part of a block's deviation that the next block inherits.
    memory: f64,
    /// Number of blocks that are slowed down by a stall of any length.
    tails: f64,
}

/// Standard deviation of the logarithm of a block.
const NOISE: f64 = 0.05;
/// Deviation of the logarithm of a block where the most rounds find 3 %.
const LITTLE_NOISE: f64 = 0.03;

fn uniform(random: &mut Xoshiro256PlusPlus) -> f64 {
    ((random.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
}

/// Log ratios of an experiment: of the rounds of practice, and of the rounds of the design.
#[derive(Debug)]
struct Experiment {
    /// The log ratios of the rounds of practice.
    practice: Vec<f64>,
    /// Log ratios of the rounds that count.
    ratios: Vec<f64>,
    /// True for each pair in which the second level came first.
    swapped: Vec<bool>,
}

impl Experiment {
    fn new(nature: Nature, ratio: f64, design: &Design, noise: f64, seed: u64) -> Self {
        let random = &mut Xoshiro256PlusPlus::seed_from_u64(seed ^ 0x5eed);
        let practice = (0..PRACTICE - 1).map(|round| vec![round % 2, 1 - round % 2]);
        let orders: Vec<Vec<usize>> = practice.chain(design.orders()).collect();
        let mut practice = in_order(nature, ratio, &orders, noise, random);
        let ratios = practice.split_off(PRACTICE - 1);
        let swapped = design.orders().iter().map(|order| order[0] == 1).collect();
        Self { practice, ratios, swapped }
    }

    /// Returns the judgement after `rounds` rounds.
    fn judged(&self, design: &Design, rounds: usize, error: f64) -> Judgement {
        let flips = design.flips(&self.swapped[..rounds]);
        judge_pairs(&self.ratios[..rounds], reach(&self.practice), &flips, error, &Terms::default())
    }
}

/// Returns the log ratios of blocks in these orders.
fn in_order(
    nature: Nature,
    ratio: f64,
    orders: &[Vec<usize>],
    noise: f64,
    random: &mut Xoshiro256PlusPlus,
) -> Vec<f64> {
    let blocks = (2 * orders.len()) as f64;
    let (mut deviation, mut at) = (0.0, 0.0);
    let mut ratios = Vec::new();
    for order in orders {
        let mut values = [0.0; 2];
        for level in order {
            let sum: f64 = (0..12).map(|_| uniform(random)).sum();
            deviation = nature.memory * deviation + noise * (sum - 6.0);
            let stalled = uniform(random) < nature.tails;
            // A stall of any length: the power of its tail is 1.5, without a variance.
            let stall = if stalled { 0.1 * uniform(random).powf(-2.0 / 3.0) } else { 0.0 };
            at += 1.0;
            let effect = if *level == 1 { f64::ln(ratio) } else { 0.0 };
            values[*level] = nature.drift * at / blocks + deviation - stall + effect;
        }
        ratios.push(values[1] - values[0]);
    }
    ratios
}

/// Returns true if the number of rounds that practice predicts for a difference of 3 % finds it.
fn is_found(nature: Nature, seed: u64) -> bool {
    let terms = Terms::default();
    let ratio = 1.0 + terms.difference;
    let design = |rounds: usize| Design::new(2, rounds, &terms, false, seed);
    // Practice belongs to a design with the maximum number of rounds, so that the drift is equal.
    let practised = Experiment::new(nature, ratio, &design(Design::ROUNDS_MAX), LITTLE_NOISE, seed);
    let spread = Spread::from_log_ratios(&practised.practice, terms.error).unwrap();
    let design = design((spread.rounds(ratio.ln()) as usize).min(Design::ROUNDS_MAX));
    let experiment = Experiment::new(nature, ratio, &design, LITTLE_NOISE, seed);
    experiment.judged(&design, design.rounds(), terms.error).outcome == Outcome::Different
}

/// Returns the judgement at the first look with a clear outcome, or at the last look.
fn outcome(nature: Nature, ratio: f64, early: bool, seed: u64) -> Judgement {
    let terms = Terms::default();
    let design = Design::new(2, 32, &terms, early, seed);
    let experiment = Experiment::new(nature, ratio, &design, NOISE, seed);
    let judged = |rounds: usize, error: f64| experiment.judged(&design, rounds, error);
    let mut looks = design.looks().iter().map(|look| judged(look.rounds, look.error));
    let clear = looks.find(|judged| judged.outcome != Outcome::NoneSeen);
    clear.unwrap_or_else(|| judged(design.rounds(), design.error_at(design.rounds())))
}

fn variable(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|typed| typed.parse().ok()).unwrap_or(default)
}

/// Nature of the blocks, and the true ratio.
type Kind = (Nature, f64);

/// Share of the experiments for which a condition holds.
#[derive(Debug)]
struct Share {
    /// Description of the experiments, and the way to repeat them.
    of: String,
    value: f64,
    /// Deviation that a share of 0.05 or 0.95 exceeds by chance in less than one of a million samples.
    chance: f64,
}

impl Share {
    /// Runs `PLUMB_SERIES` experiments of each of these kinds, and returns the share for which `holds` is
    /// true.
    fn measure(kinds: &[Kind], early: bool, holds: impl Fn(&Judgement, f64) -> bool) -> Self {
        let (count, first) = (series(), variable("PLUMB_SEED", 1));
        let held = |(nature, ratio): &Kind| {
            let seed = seed_of(*nature, *ratio, early).wrapping_add(first);
            let judged = |n: u64| outcome(*nature, *ratio, early, seed.wrapping_add(n));
            (0..count).filter(|n| holds(&judged(*n), *ratio)).count()
        };
        let all = (count as usize * kinds.len()) as f64;
        let value = kinds.iter().map(held).sum::<usize>() as f64 / all;
        let of = format!("{all} experiments, early ends {early}, from seed {first}, of {kinds:?}");
        Self { of, value, chance: 5.5 * (0.05 * 0.95 / all).sqrt() + 2.0 / all }
    }

    fn is_at_least(&self, least: f64) {
        assert!(self.value >= least - self.chance, "{self:?}: expected at least {least}");
    }

    fn is_at_most(&self, most: f64) {
        assert!(self.value <= most + self.chance, "{self:?}: expected at most {most}");
    }

    fn told(&self, what: &str) {
        println!("{what}: {:.4} ({})", self.value, self.of);
    }
}

/// Returns the first seed of a kind of experiments, far from those of all others.
fn seed_of(nature: Nature, ratio: f64, early: bool) -> u64 {
    let marks = [
        nature.drift.to_bits(),
        nature.memory.to_bits(),
        nature.tails.to_bits(),
        ratio.to_bits(),
        early.into(),
    ];
    marks.into_iter().fold(0, |seed, mark| Xoshiro256PlusPlus::seed_from_u64(seed ^ mark).next_u64())
}

/// Returns the number of experiments of each kind.
fn series() -> u64 {
    variable("PLUMB_SERIES", 12)
}

/// Returns all natures with these ratios: each kind separately if there are enough experiments, otherwise all
/// together.
fn groups(ratios: &[f64]) -> Vec<Vec<Kind>> {
    let kinds: Vec<Kind> =
        NATURES.iter().flat_map(|nature| ratios.iter().map(move |ratio| (*nature, *ratio))).collect();
    kinds.chunks(if series() < 1_000 { kinds.len() } else { 1 }).map(<[Kind]>::to_vec).collect()
}

#[test]
fn an_interval_covers_the_true_ratio_as_often_as_it_says() {
    for kinds in groups(&[1.0, 1.03, 1.3, 6.27]) {
        for early in [false, true] {
            let covered = Share::measure(&kinds, early, |judged, ratio| judged.interval.contains(ratio.ln()));
            covered.told("covered");
            covered.is_at_least(0.945);
            if !early {
                covered.is_at_most(0.97);
            }
        }
    }
}

#[test]
fn outcomes_are_seldom_wrong() {
    for (ratio, wrong) in [(1.0, Outcome::Different), (Terms::default().equivalent, Outcome::Equivalent)] {
        for kinds in groups(&[ratio]) {
            for early in [false, true] {
                let share = Share::measure(&kinds, early, |judged, _| judged.outcome == wrong);
                share.told(&format!("{wrong:?}"));
                share.is_at_most(0.055);
            }
        }
    }
}

#[test]
fn what_is_said_to_be_detectable_is_detected() {
    let nature = NATURES[0];
    let smallest: Vec<f64> = (0..20).map(|n| outcome(nature, 1.0, false, n).smallest_detectable).collect();
    let smallest = plumb_measure::median(&smallest).unwrap();
    let found = |n: &u64| outcome(nature, smallest.exp(), false, *n).outcome == Outcome::Different;
    let power = (1_000..1_100).filter(found).count() as f64 / 100.0;
    assert!((0.6..=0.95).contains(&power), "{power} of experiments find a difference of {smallest}");
}

#[test]
fn what_practice_predicts_is_enough_to_find_a_difference() {
    for nature in NATURES {
        let count = series().max(100);
        let first = seed_of(nature, 1.03, false).wrapping_add(variable("PLUMB_SEED", 1));
        let found = (0..count).filter(|n| is_found(nature, first.wrapping_add(*n))).count() as f64;
        let share = found / count as f64;
        println!("found 1.03 in the predicted budget: {share:.4} of {count}, {nature:?}");
        // Deviation that a share of 0.8 exceeds by chance in less than one of a million samples.
        let chance = 5.0 * (0.8 * 0.2 / count as f64).sqrt();
        assert!(share >= 0.8 - chance, "{share} of {count} from seed {first}, {nature:?}");
    }
}
