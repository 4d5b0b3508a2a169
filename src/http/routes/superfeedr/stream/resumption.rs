//! Where a stream continues, judged by the position that its client sends.

use std::collections::BTreeMap;

use crate::http::routes::superfeedr::stream::gap::{GapReason, StreamGap};
use crate::http::routes::superfeedr::stream::position::StreamPosition;
use crate::http::routes::superfeedr::stream::scope::SelectedLog;
use feedgate_core::record::Seq;
use feedgate_core::resource::ResourceId;
use feedgate_core::store::StoreError;
use feedgate_store::Store;

/// The most logs of a position that are looked up although the stream does not send them: more
/// than a stream has.
const MOST_OTHERS: usize = 200;

/// Where a stream continues.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Resumption {
    /// The last record of each log that counts as sent.
    pub(super) sent: BTreeMap<ResourceId, Seq>,
    /// What the client may have missed and does not get.
    pub(super) gaps: Vec<StreamGap>,
    /// Whether the id was a position. The stream begins with the newest entries if it was not.
    pub(super) is_position: bool,
}

/// Returns where a stream of `logs` continues behind the event whose id is `id`.
pub(super) async fn resume(
    store: &Store,
    logs: &BTreeMap<ResourceId, SelectedLog>,
    id: &str,
) -> Result<Resumption, StoreError> {
    let mut resumed = Resumption::default();
    let Some(StreamPosition(mut position)) = StreamPosition::parse(id) else {
        for (id, log) in logs {
            resumed.sent.insert(*id, log.resource.head);
            resumed.gaps.extend(unknown_part(log));
        }
        return Ok(resumed);
    };
    resumed.is_position = true;
    let others = position.iter().filter(|(id, _)| !logs.contains_key(*id));
    let others: Vec<_> = others.map(|(id, seq)| (*id, *seq)).take(MOST_OTHERS).collect();
    for (id, seq) in others {
        match store.get(id).await? {
            // The copy of a database may give a resource another number, and keeps those of its log.
            Some(resource) => {
                position.entry(resource.id).or_insert(seq);
            }
            None => {
                let topic = Some(logs).filter(|logs| logs.len() == 1);
                let topic = topic.and_then(|logs| logs.values().next());
                resumed.gaps.push(StreamGap {
                    topic: topic.map(|log| log.resource.topic.displayed().into_owned()),
                    from: Seq(seq.0 + 1),
                    to: None,
                    reason: GapReason::Deleted,
                });
            }
        }
    }
    for (id, log) in logs {
        let sent = match position.get(id) {
            Some(seq) if *seq > log.resource.head => {
                resumed.gaps.extend(unknown_part(log));
                log.resource.head
            }
            Some(seq) => *seq,
            // The client subscribed to it after its last event.
            None => log.begun_after,
        };
        resumed.sent.insert(*id, sent);
    }
    Ok(resumed)
}

/// Returns the records of a log that a client may have missed if its position is unknown: all since it
/// subscribed.
fn unknown_part(log: &SelectedLog) -> Option<StreamGap> {
    let head = log.resource.head;
    (log.begun_after < head).then(|| StreamGap {
        topic: Some(log.resource.topic.displayed().into_owned()),
        from: Seq(log.begun_after.0 + 1),
        to: Some(head),
        reason: GapReason::UnknownPosition,
    })
}
