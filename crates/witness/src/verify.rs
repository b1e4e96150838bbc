//! Comparison of the contents after the cut with the record of the witness.

use std::sync::atomic::AtomicBool;

use plumb_block::{Bytes, Device, unix_time};
use plumb_load::read_back;
use plumb_report::document::power::VerifyDocument;

use crate::error::{Error, Result};
use crate::ledger::Ledger;
use crate::link::Link;
use crate::message::Message;
use crate::plan::Plan;
use crate::record::Record;

/// Fetches the record of the newest run on this drive.
///
/// # Errors
/// If the witness has none, or cannot be reached.
pub fn fetch(link: &mut Link<'_>, target: &str, identity: Option<String>) -> Result<Record> {
    let (answers, confirmed) = link.ask(&Message::Fetch { target: target.to_owned(), identity })?;
    let mut record = None;
    for answer in answers {
        match (answer, &mut record) {
            (Message::Run(facts), None) => record = Some(Record::new(facts)),
            (Message::Batch(batch), Some(record)) if batch.number == record.confirmed() + 1 => {
                record.batches.push(batch);
            }
            _ => break,
        }
    }
    let is_whole = |record: &Record| record.confirmed() == confirmed;
    let broken = || Error::not_measured("the witness did not send the whole run");
    record.filter(is_whole).ok_or_else(broken)
}

/// Reads the region of the run from `device` and compares every block. Writes nothing.
///
/// # Errors
/// If the record contradicts itself, the device is another one, a later run wrote to it, or after a stop.
pub fn verify(
    record: &Record,
    device: &dyn Device,
    identity: Option<&str>,
    stop: &AtomicBool,
) -> Result<VerifyDocument> {
    let (facts, info) = (&record.facts, device.info());
    if facts.identity.as_deref() != identity || facts.size != info.size {
        let drive = |identity: Option<&str>, size: Bytes| {
            format!("{} of {size}", identity.unwrap_or("a target without a serial"))
        };
        let (was, is) = (drive(facts.identity.as_deref(), facts.size), drive(identity, info.size));
        return Err(Error::not_measured(format!(
            "the run was on {was}, and this is {is}: name the drive of the run"
        )));
    }
    facts.plan.check(&info)?;
    let mut ledger = Ledger::from_record(record)?;
    if !read_back(device, &mut ledger, stop, &mut |_| ())? {
        return Err(Error::not_measured("stopped before everything was read: no result"));
    }
    let seed = facts.plan.seed;
    let later = Plan::seeds_between(seed, unix_time());
    if let Some(later) = later.and_then(|later| ledger.others.range(later).next_back().copied()) {
        return Err(Error::not_measured(format!(
            "there are blocks of run {later:016x}, which began after run {seed:016x}, the newest that this witness knows of this \
             target: ask the witness of that run"
        )));
    }
    Ok(ledger.into_document())
}
