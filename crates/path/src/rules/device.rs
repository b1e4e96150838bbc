//! Durability on a device that is used without the kernel in between: requests reach it unchanged. There is
//! no page cache, so acknowledged data has at least reached the device.

use super::Flow;
use super::durable::{keeps_nothing, no_flush_offered, unknown_below};
use crate::facts::Mark;
use crate::model::{Cache, DurableAt, Flush};

/// Returns the durability on a path without a page cache.
pub(super) fn durable_at(flow: &Flow<'_>) -> DurableAt {
    let Some((_, device)) = flow.nodes().nth(1) else {
        let sentence = "No device was found.".to_owned();
        return DurableAt { sentence, ..DurableAt::default() };
    };
    let name = device.name.clone();
    if device.marks.contains(&Mark::KeepsNothing) {
        let sentence = format!("Nothing is durable here: {}.", keeps_nothing(device));
        return DurableAt { sentence, ..DurableAt::default() };
    }
    if let Some(offered) = no_flush_offered(device) {
        let sentence =
            format!("Nothing written here can be made durable by a sync: {name} offers {offered}.");
        return DurableAt { sentence, ..DurableAt::default() };
    }
    if flow.flush(1) == Flush::Dropped {
        let sentence = format!("A flush makes nothing durable here: it ends at {name}, which may lose data.");
        return DurableAt { sentence, ..DurableAt::default() };
    }
    if let Some(reason) = unknown_below(flow) {
        let holds = match device.cache {
            Cache::Volatile => format!("A write may be in a volatile cache when {name} acknowledges it"),
            _ => format!("Where a write is when {name} acknowledges it is not said"),
        };
        let sentence = format!(
            "{holds}; whether it is durable once a flush was answered cannot be seen from here: {reason}."
        );
        return DurableAt { sentence, ..DurableAt::default() };
    }
    match device.cache {
        Cache::None | Cache::Protected => DurableAt {
            sentence: format!("A write is durable at {name} as soon as it is acknowledged."),
            write: Some(name.clone()),
            direct: Some(name.clone()),
            fsync: Some(name),
        },
        Cache::Volatile => DurableAt {
            sentence: format!(
                "A write is in the volatile cache of {name} when it is acknowledged; it is durable once a flush was \
                 answered, or the write itself if it carried FUA."
            ),
            fsync: Some(name),
            ..DurableAt::default()
        },
        Cache::Unknown => DurableAt {
            sentence: format!("Whether {name} holds acknowledged writes in a volatile cache is not known."),
            ..DurableAt::default()
        },
    }
}
