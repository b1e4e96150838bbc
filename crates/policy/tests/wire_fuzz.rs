//! Tests every decoder with hostile bytes: noise of any length, and correct answers with bytes changed, cut
//! and joined. A decoder may return `None`, but not panic, and encoding a decoded value must give it back.

use plumb_linux::command::sense;
use plumb_linux::probe::wire::caching_page;
use plumb_policy::mock::encode;
use plumb_policy::wire::{ata, designator, mode_page, nvme_command, nvme_log, ocp_log, sct, smart};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

const SEED: u64 = 0x5eed_0bad_cafe_0001;
const ROUNDS: usize = 250_000;

/// Returns correct answers to start from.
fn answers() -> Vec<Vec<u8>> {
    let mut page = vec![0, 0x22, 0, 0x10, 0, 0, 0, 8];
    page.extend([0; 8]);
    page.extend([0x88, 0x12, 0x04]);
    page.extend([0; 17]);
    let (names, serial) = encode::identity([0x50, 0, 0xc5, 0, 1, 2, 3, 4], "SERIAL 1");
    let status = sense::AtaStatus { error: 0, count: 1, lba_low: 0, status: 0x50 };
    let health = ocp_log::PowerLoss { incomplete_shutdowns: 1, capacitor_health: Some(99), starts: 12 };
    let mut identify = vec![0; 4096];
    identify[4..8].copy_from_slice(b"SN 1");
    vec![
        page,
        names,
        serial,
        encode::encode_ata(status),
        vec![0x70, 0, 6, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x2a, 1],
        encode::ocp_log(health),
        encode::smart(417),
        identify,
        sct::set(sct::WriteCache::ForcedOn, true),
        [&[3, 16, 0, 0][..], &[7; 16]].concat(),
    ]
}

/// Runs all decoders on `bytes`.
fn decode(bytes: &[u8]) {
    sense::parse(bytes);
    sense::ata_status(bytes);
    designator::parse(bytes);
    designator::serial(bytes);
    ocp_log::parse(bytes);
    nvme_log::parse(bytes);
    nvme_command::uuid(bytes);
    nvme_command::names(bytes, bytes, 1);
    ata::takes_sct_feature_control(bytes);
    ata::read_set_write_cache(bytes);
    sct::read_set(bytes);
    smart::power_cycles(bytes);
    mode_page::read_select(bytes, bytes);
    for wce in [false, true] {
        if let Some(command) = mode_page::select(bytes, wce, mode_page::Save::No) {
            let read = mode_page::read_select(&command.cdb, &command.parameters);
            assert_eq!(
                read,
                Some((wce, mode_page::Save::No)),
                "what is sent is what was asked for: {bytes:02x?}"
            );
        }
    }
}

fn below(random: &mut Xoshiro256PlusPlus, limit: usize) -> usize {
    (random.next_u64() % limit.max(1) as u64) as usize
}

fn mutated(random: &mut Xoshiro256PlusPlus, answers: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = answers[below(random, answers.len())].clone();
    // The first bytes hold lengths and codes, where errors of decoders are likely.
    for _ in 0..=below(random, 6) {
        let reach = if random.next_u32() & 1 == 0 { 32 } else { 4096 };
        let at = below(random, bytes.len().min(reach));
        if let Some(byte) = bytes.get_mut(at) {
            *byte = random.next_u32() as u8;
        }
    }
    match below(random, 4) {
        0 => bytes.truncate(below(random, bytes.len() + 1)),
        1 => bytes.extend(answers[below(random, answers.len())].iter().take(64)),
        _ => {}
    }
    bytes
}

#[test]
fn no_bytes_make_a_decoder_panic() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(SEED);
    let answers = answers();
    for round in 0..ROUNDS {
        let bytes = if round % 4 == 0 {
            let mut noise = vec![0; below(&mut random, 600)];
            random.fill_bytes(&mut noise);
            noise
        } else {
            mutated(&mut random, &answers)
        };
        let caught = std::panic::catch_unwind(|| decode(&bytes));
        assert!(caught.is_ok(), "seed {SEED:#x}, round {round}: {bytes:02x?}");
    }
}

#[test]
fn every_cut_of_a_true_answer_is_taken() {
    for answer in answers() {
        for length in 0..=answer.len().min(600) {
            decode(&answer[..length]);
        }
    }
    let page = &answers()[0];
    assert_eq!(caching_page::parse(page).map(|page| page.write_cache), Some(true));
    let command = mode_page::select(page, false, mode_page::Save::Yes);
    assert_eq!(command.map(|command| command.cdb[1]), Some(0x11));
}

#[test]
fn the_registers_of_an_ata_device_come_back() {
    let status = sense::AtaStatus { error: 0, count: 2, lba_low: 0, status: 0x50 };
    let bytes = encode::encode_ata(status);
    assert_eq!(sense::ata_status(&bytes), Some(status));
    assert!(status.is_success() && sense::parse(&bytes).unwrap().is_recovered());
    let failed = sense::AtaStatus { error: 4, status: 0x51, ..status };
    assert!(!sense::ata_status(&encode::encode_ata(failed)).unwrap().is_success());
    assert_eq!(sense::ata_status(&bytes[..20]), None);
}
