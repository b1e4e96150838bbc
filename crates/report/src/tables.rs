//! Tables of what the devices were handed, for the page and for Markdown.

use plumb_measure::{FlushWrites, StorageSide};

use crate::document::{Account, RunDocument, RunTarget};
use crate::figures::{may_lack, writes_without_flushes};
use crate::headline::sentence;
use crate::printable::printable;
use crate::quantity::{bytes, count, duration, or_dash, three_digits};
use crate::terminal::{Cell, Ink, Side, Table};
use crate::wording::method as method_name;

/// The flushes of the targets that made something durable, and what is to be said of them: why they are not known, or
/// those of each device.
pub(crate) fn flushes(document: &RunDocument) -> Option<(Table, Vec<String>)> {
    let labelled = document.labels().into_iter().zip(&document.targets);
    let asks = |target: &RunTarget| {
        let job = document.job_of(target);
        job.is_some_and(|job| job.flush.is_some() || job.durable_write_every.is_some())
    };
    let columns = ["", "syncs", "device flushes", "for each", "mean of a flush", "device writes"];
    let mut table = Table::new(&head(&columns));
    let mut words = Vec::new();
    for (label, target) in labelled.filter(|(_, target)| target.sides.syncs() > 0 && asks(target)) {
        let (row, more) = flush_row(&printable(&label), target);
        table.row(row);
        words.extend(more);
    }
    (!table.body().is_empty()).then_some((table, words))
}

fn head<'a>(columns: &[&'a str]) -> Vec<(&'a str, Side)> {
    let side = |index| if index == 0 { Side::Left } else { Side::Right };
    columns.iter().enumerate().map(|(index, name)| (*name, side(index))).collect()
}

fn flush_row(label: &str, target: &RunTarget) -> (Vec<Cell>, Vec<String>) {
    let sides = &target.sides;
    let storage = sides.storage.as_ref();
    let flushes = storage.and_then(|storage| storage.flushes);
    let mut words = Vec::new();
    if flushes.is_none() {
        words.push(format!("{label}: not known: {}", sentence(&printable(sides.flushes_unknown_because()))));
    }
    let devices = storage.map_or(&[][..], |storage| &storage.devices);
    if devices.len() > 1 {
        let each = devices
            .iter()
            .map(|device| format!("{} {}", printable(&device.name), or_dash(device.flushes, count)));
        words.push(format!("{label}, flushes by device: {}.", each.collect::<Vec<_>>().join(", ")));
    }
    // A direct write may be durable by FUA, without any flush.
    let is_zero = flushes == Some(0) && sides.sync.is_used();
    let row = vec![
        Cell::plain(label),
        Cell::plain(count(sides.syncs())),
        Cell::inked(if is_zero { Ink::Red } else { Ink::Plain }, or_dash(flushes, count)),
        Cell::plain(or_dash(sides.flushes_per_sync(), |per| format!("{per:.2}"))),
        Cell::plain(or_dash(storage.and_then(|storage| storage.flush_mean), duration)),
        Cell::plain(or_dash(storage, writes)),
    ];
    (row, words)
}

/// The writes of a window, as far as they can be told from its flushes.
fn writes(storage: &StorageSide) -> String {
    match storage.flush_writes {
        FlushWrites::TakenOut => writes_without_flushes(storage.writes, storage.flushes),
        FlushWrites::NotCounted | FlushWrites::Unknown => count(storage.writes),
    }
}

/// Why methods of making a write durable were not measured.
pub(crate) fn unmeasured_methods(document: &RunDocument) -> Vec<String> {
    let missing = document.targets.iter().filter(|target| target.sides.durable_latency.is_none());
    let note = |target: &RunTarget| {
        let method = document.job_of(target)?.method?;
        let why = target.failed_because.as_deref().unwrap_or("no operation completed");
        Some(format!("{}: not measured: {}", method_name(method), sentence(why)))
    };
    missing.filter_map(note).collect()
}

/// All that the devices were handed, phase by phase, with the sum; `None` if nothing was booked.
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
    let mut table = Table::new(&head(&["phase", "seconds", "flushes", "writes", "written", "reads", "read"]));
    accounts.iter().for_each(|account| table.row(account_row(account, Ink::Plain)));
    let mut total = account_row(&sum, Ink::Bold);
    if accounts.iter().any(|account| may_lack(account.writes, account.flushes)) {
        total[3].text = format!("at least {}", count(sum.writes));
    }
    table.row(total);
    Some(table)
}

fn account_row(account: &Account, ink: Ink) -> Vec<Cell> {
    let cells = [
        printable(&account.phase),
        three_digits(account.seconds),
        or_dash(account.flushes, count),
        writes_without_flushes(account.writes, account.flushes),
        bytes(account.write_bytes as f64),
        count(account.reads),
        bytes(account.read_bytes as f64),
    ];
    cells.map(|text| Cell::inked(ink, text)).to_vec()
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
        let writes = |document: &RunDocument| flushes(document).unwrap().0.body()[0][5].text.clone();
        assert_eq!(writes(&document), "at least 52,410");
        document.targets[0].sides.storage.as_mut().unwrap().flushes = Some(5241);
        assert_eq!(writes(&document), "52,410");
        let storage = document.targets[0].sides.storage.as_mut().unwrap();
        (storage.flushes, storage.flush_writes) = (Some(52_410), FlushWrites::NotCounted);
        assert_eq!(writes(&document), "52,410", "nothing was taken out");
    }
}
