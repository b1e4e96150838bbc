//! Tables of requests to the devices, for every format with tables.

use plumb_measure::{FlushWrites, StorageSide};
use plumb_text::printable;

use crate::document::{Account, RunDocument, RunTarget};
use crate::figures::{may_lack, writes_without_flushes};
use crate::headline::sentence;
use crate::outline::{Item, Section};
use crate::quantity::{bytes, count, flush_time, or_dash, three_digits};
use crate::terminal::{Cell, Ink, Table};
use crate::wording::method as method_name;

/// Number of columns that remain on short lines: the name, and the first two counts.
const COLUMNS_MIN: usize = 3;

/// Returns the two sections about requests to the devices: flushes, and all requests. An empty section has no
/// items. `labels` are the names of the targets.
pub(crate) fn device_sections(document: &RunDocument, labels: &[String]) -> [Section; 2] {
    let fitting = |table: Option<Table>| table.map(|table| Item::Fitting { table, columns_min: COLUMNS_MIN });
    let (table, words) = flushes(document, labels).unzip();
    let flushes = fitting(table).into_iter().chain(Item::lines(&words.unwrap_or_default()));
    let accounts = fitting(accounts(&document.accounting));
    [
        Section::new("Where the flushes went", flushes.collect()),
        Section::new("Everything sent to the devices", accounts.into_iter().collect()),
    ]
}

/// Returns the flushes of the targets, named by `labels`, that made something durable, with remarks: why they
/// are unknown, or the flushes of each device.
pub(crate) fn flushes(document: &RunDocument, labels: &[String]) -> Option<(Table, Vec<String>)> {
    let labelled = labels.iter().zip(&document.targets);
    let asks = |target: &RunTarget| {
        let job = document.job_of(target);
        job.is_some_and(|job| job.flush.is_some() || job.durable_write_every.is_some())
    };
    let of: Vec<(String, &RunTarget)> = labelled
        .filter(|(_, target)| target.sides.syncs() > 0 && asks(target))
        .map(|(label, target)| (printable(label), target))
        .collect();
    let words = of.iter().flat_map(|(label, target)| flush_words(label, target)).collect();
    let storage = |target: &RunTarget, show: fn(&StorageSide) -> Option<String>| {
        or_dash(target.sides.storage.as_ref().and_then(show), |text| text)
    };
    let table = Table::for_rows(of)
        .left("", |(label, _)| label.clone())
        .right("syncs", |(_, target)| count(target.sides.syncs()))
        .right("device flushes", |(_, target)| {
            // A direct write may be durable by FUA, without a flush.
            let is_zero = flushes_of(target) == Some(0) && target.sides.sync.is_used();
            let ink = if is_zero { Ink::Red } else { Ink::Plain };
            Cell::inked(ink, or_dash(flushes_of(target), count))
        })
        .right("for each", |(_, target)| or_dash(target.sides.flushes_per_sync(), |per| format!("{per:.2}")))
        .right("mean of a flush", |(_, target)| storage(target, |side| side.flush_mean.map(flush_time)))
        .right("device writes", |(_, target)| storage(target, |side| Some(writes(side))));
    Some((table.if_any()?, words))
}

fn flushes_of(target: &RunTarget) -> Option<u64> {
    target.sides.storage.as_ref()?.flushes
}

/// Returns the reason why the flushes of a target are unknown, or those of each device if there are several.
fn flush_words(label: &str, target: &RunTarget) -> Vec<String> {
    let sides = &target.sides;
    let mut words = Vec::new();
    if flushes_of(target).is_none() {
        words.push(format!("{label}: not known: {}", sentence(&printable(sides.flushes_unknown_because()))));
    }
    let devices = sides.storage.as_ref().map_or(&[][..], |storage| &storage.devices);
    if devices.len() > 1 {
        let each = devices
            .iter()
            .map(|device| format!("{} {}", printable(&device.name), or_dash(device.flushes, count)));
        words.push(format!("{label}, flushes by device: {}.", each.collect::<Vec<_>>().join(", ")));
    }
    words
}

/// Returns the number of writes of a window, as far as they can be distinguished from its flushes.
fn writes(storage: &StorageSide) -> String {
    match storage.flush_writes {
        FlushWrites::TakenOut => writes_without_flushes(storage.writes, storage.flushes),
        FlushWrites::NotCounted | FlushWrites::Unknown => count(storage.writes),
    }
}

/// Returns the reasons why methods to make a write durable were not measured.
pub(crate) fn unmeasured_methods(document: &RunDocument) -> Vec<String> {
    let missing = document.targets.iter().filter(|target| target.sides.durable_latency.is_none());
    let note = |target: &RunTarget| {
        let method = document.job_of(target)?.method?;
        let why = target.failed_because.as_deref().unwrap_or("no operation completed");
        Some(format!("{}: not measured: {}", method_name(method), sentence(why)))
    };
    missing.filter_map(note).collect()
}

/// Returns the requests to the devices for each phase, with the sum; `None` if nothing was counted.
pub(crate) fn accounts(accounts: &[Account]) -> Option<Table> {
    let mut sum = accounts.first()?.clone();
    "all".clone_into(&mut sum.phase);
    for account in &accounts[1..] {
        sum.seconds += account.seconds;
        sum.flushes = sum.flushes.zip(account.flushes).map(|(sum, flushes)| sum.saturating_add(flushes));
        sum.reads = sum.reads.saturating_add(account.reads);
        sum.writes = sum.writes.saturating_add(account.writes);
        sum.read_bytes = sum.read_bytes.saturating_add(account.read_bytes);
        sum.write_bytes = sum.write_bytes.saturating_add(account.write_bytes);
    }
    let lacks = accounts.iter().any(|account| may_lack(account.writes, account.flushes));
    let writes = |account: &Account, ink| match ink {
        Ink::Bold if lacks => format!("at least {}", count(account.writes)),
        _ => writes_without_flushes(account.writes, account.flushes),
    };
    let rows = accounts.iter().map(|account| (account, Ink::Plain)).chain([(&sum, Ink::Bold)]);
    let table = Table::for_rows(rows)
        .left("phase", |(of, ink)| Cell::inked(*ink, printable(&of.phase)))
        .right("seconds", |(of, ink)| Cell::inked(*ink, three_digits(of.seconds)))
        .right("flushes", |(of, ink)| Cell::inked(*ink, or_dash(of.flushes, count)))
        .right("writes", |(of, ink)| Cell::inked(*ink, writes(of, *ink)))
        .right("written", |(of, ink)| Cell::inked(*ink, bytes(of.write_bytes as f64)))
        .right("reads", |(of, ink)| Cell::inked(*ink, count(of.reads)))
        .right("read", |(of, ink)| Cell::inked(*ink, bytes(of.read_bytes as f64)));
    Some(table.table())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn account(flushes: u64, writes: u64) -> Account {
        let phase = "overwrite-fdatasync".to_owned();
        let (flushes, bytes) = (Some(flushes), writes * 4096);
        Account { phase, seconds: 1.0, flushes, reads: 0, writes, read_bytes: 0, write_bytes: bytes }
    }

    #[test]
    fn a_sum_with_a_lower_bound_in_it_is_one_too() {
        let writes = |list: &[Account]| -> Vec<String> {
            accounts(list).unwrap().body().iter().map(|row| row[3].text.clone()).collect()
        };
        assert_eq!(writes(&[account(1, 10), account(0, 0)]), ["10", "0", "10"]);
        assert_eq!(writes(&[account(10, 10), account(1, 1000)]), ["at least 10", "1,000", "at least 1,010"]);
        assert!(accounts(&[]).is_none());
    }

    #[test]
    fn writes_beside_many_flushes_are_a_lower_bound() {
        let mut document = fixture::virtual_machine();
        let writes = |document: &RunDocument| {
            flushes(document, &document.labels()).unwrap().0.body()[0][5].text.clone()
        };
        assert_eq!(writes(&document), "at least 52,410");
        document.targets[0].sides.storage.as_mut().unwrap().flushes = Some(5241);
        assert_eq!(writes(&document), "52,410");
        let storage = document.targets[0].sides.storage.as_mut().unwrap();
        (storage.flushes, storage.flush_writes) = (Some(52_410), FlushWrites::NotCounted);
        assert_eq!(writes(&document), "52,410", "nothing was taken out");
    }
}
