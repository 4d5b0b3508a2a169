//! The slots of callback hosts that nodes take, renew and give up in the shared schema
//! ([`feedgate_core::callback_slots`]).
//!
//! Each change of a slot applies only while it is what it was when it was read: a lease is renewed by its node
//! before it ends, and taken by another after that.

use std::collections::HashSet;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use futures_util::future::join_all;
use futures_util::try_join;
use tracing::warn;

use crate::clock;
use crate::delivery::claimed_hosts;
use crate::engine::row::Row;
use crate::engine::sql::{Value, params};
use crate::engine::tx::{Tx, Wake};
use crate::{Db, Engine, Store};
use feedgate_core::callback_slots::{SlotLease, SlotPlan, SlotSet, SlotTerms, latest_end, slot_of};
use feedgate_core::node::{NodeId, NodeInfo};
use feedgate_core::store::StoreError;

/// The time between two reports of a node that shares nothing.
const ALONE: Duration = Duration::from_secs(30);
/// A lease is this many times as long as the time between two reports.
const REPORTS: i32 = 5;
/// The longest time between two looks at the claims that other nodes have at hosts that were taken.
const LOOK: Duration = Duration::from_millis(200);
/// By how much the clocks of two nodes may differ.
const SKEW: TimeDelta = TimeDelta::seconds(1);

/// Records that a node runs, and shares the hosts of callbacks ([`Store::share_callback_hosts`]).
pub(crate) async fn share(
    store: &Store,
    (node, now): (&NodeInfo, DateTime<Utc>),
    terms: SlotTerms,
) -> Result<Duration, StoreError> {
    let shared = &store.shared;
    if matches!(shared.engine, Engine::Sqlite(_)) {
        store.record_node(node, now).await?;
        return Ok(ALONE);
    }
    let served = &shared.served_hosts;
    served.begin_sharing();
    let before = (served.handovers(), served.beginnings());
    let renewed = renew_share(store, node, now, terms).await;
    // What changed in memory stays, even if the rest failed.
    if (served.handovers(), served.beginnings()) != before {
        Wake::Subscriptions.notify(&shared.wake_signals);
    }
    renewed?;
    let pause = (terms.lease / REPORTS).to_std().unwrap_or(LOOK);
    Ok(if served.awaits_others() { pause.min(LOOK) } else { pause })
}

/// Renews the share of a node, in the database and in memory.
async fn renew_share(
    store: &Store,
    node: &NodeInfo,
    now: DateTime<Utc>,
    terms: SlotTerms,
) -> Result<(), StoreError> {
    let Store { shared, cells, .. } = store;
    let served = &shared.served_hosts;
    let (node, in_memory) = (node.clone(), served.clone());
    let slots = shared.write(move |tx| {
        Box::pin(async move {
            share_slots(tx, &node, (now, terms), |given_up| in_memory.give_up(given_up)).await
        })
    });
    let OwnSlots { held, taken, until } = slots.await?;
    served.hold_slots((held, taken), (now, until));
    begin_new_slots(shared, cells, now, terms).await
}

/// The slots of a node.
struct OwnSlots {
    held: SlotSet,
    /// The slots that it has just taken.
    taken: SlotSet,
    /// When the first of their leases ends.
    until: DateTime<Utc>,
}

/// Renews, gives up and takes slots.
async fn share_slots(
    tx: &Tx<'_>,
    node: &NodeInfo,
    (now, terms): (DateTime<Utc>, SlotTerms),
    give_up_in_memory: impl Fn(SlotSet),
) -> Result<OwnSlots, StoreError> {
    const REPORT: &str = "
        insert into nodes (id, name, version, started_at, seen_at, serves_until)
        values ($1, $2, $3, $4, $5, $6)
            on conflict (id) do update
           set seen_at = excluded.seen_at, serves_until = excluded.serves_until";
    let (id, until) = (node.id.0.as_str(), now + terms.lease);
    let name = [node.name.as_str(), node.version.as_str()];
    let report = params![id, name[0], name[1], node.started_at, now, until];
    tx.execute(REPORT, report).await?;
    let (slots, nodes) = try_join!(read_slots(tx), serving_nodes(tx, now, terms.lease))?;
    let plan = SlotPlan::new(&node.id, (&slots, &nodes), now, terms.lease);
    give_up_in_memory(plan.given_up);
    let taken = lock_free(tx, &slots, plan.taken).await?;
    let plan = SlotPlan { taken, ..plan };
    let slots = match change_slots(tx, id, &plan, (now, until)).await? {
        true => read_slots(tx).await?,
        false => slots,
    };
    let own = || slots.iter().filter(|held| held.node == node.id && held.until > now);
    let held: SlotSet = own().map(|held| held.slot).collect();
    let taken = plan.taken.iter().filter(|slot| held.contains(*slot)).collect();
    let until = own().map(|held| held.until).min().unwrap_or(now);
    Ok(OwnSlots { held, taken, until })
}

/// Locks the rows of slots to be taken, and returns these slots without those that others have locked: a node
/// that was suspended in a transaction keeps nobody from renewing its own.
async fn lock_free(
    tx: &Tx<'_>,
    slots: &[SlotLease],
    wanted: SlotSet,
) -> Result<SlotSet, StoreError> {
    const FREE: &str = "
        select slot from callback_slots where slot in ({ids $1}) {for update} {skip locked}";
    let known: SlotSet = slots.iter().map(|held| held.slot).collect();
    let with_row: SlotSet = wanted.iter().filter(|slot| known.contains(*slot)).collect();
    let new = wanted.without(with_row);
    if with_row == SlotSet::NONE {
        return Ok(new);
    }
    let locked = tx.query(FREE, &[numbers(with_row)]).await?.into_iter();
    let slot = |mut row: Row| Ok(usize::try_from(row.int()?).unwrap_or(usize::MAX));
    let locked = locked.map(slot).collect::<Result<SlotSet, StoreError>>()?;
    Ok(new.with(locked))
}

/// Stores what a node does. Returns whether that is anything.
async fn change_slots(
    tx: &Tx<'_>,
    node: &str,
    plan: &SlotPlan,
    (now, until): (DateTime<Utc>, DateTime<Utc>),
) -> Result<bool, StoreError> {
    const GIVE_UP: &str = "
        update callback_slots set until = 0 where node = $1 and slot in ({ids $2})";
    const RENEW: &str = "
        update callback_slots set until = $3
         where node = $1 and until > $2 and slot in ({ids $4})";
    // Citus (12.1) loses parameters in the condition of an upsert with several rows.
    const TAKE: &str = "
        update callback_slots set node = $1, until = $2
         where slot in ({ids $5}) and (until <= $3 or until > $4)";
    const TAKE_NEW: &str = "
        insert into callback_slots (slot, node, until) {values slot, node, until}
            on conflict (slot) do nothing";
    if plan.given_up != SlotSet::NONE {
        tx.execute(GIVE_UP, params![node, numbers(plan.given_up)]).await?;
    }
    if plan.renewed != SlotSet::NONE {
        tx.execute(RENEW, params![node, now, until, numbers(plan.renewed)]).await?;
    }
    if plan.taken != SlotSet::NONE {
        // A node that does not know yet that the clock was set forward must not take what seems to last too long.
        let latest = latest_end(clock::database_time(tx, now).await?, until - now);
        let slots = numbers(plan.taken);
        tx.execute(TAKE, params![node, until, now, latest, slots.clone()]).await?;
        let count = plan.taken.count();
        let taken = [
            ("slot", slots),
            ("node", Value::Texts(vec![node.to_owned(); count])),
            ("until", Value::Ints(vec![until.timestamp_micros(); count])),
        ];
        tx.execute_rows(TAKE_NEW, &[], &taken).await?;
    }
    Ok([plan.given_up, plan.renewed, plan.taken].iter().any(|set| *set != SlotSet::NONE))
}

/// Gives up all slots of a node.
pub(super) async fn give_up_all(tx: &Tx<'_>, node: &NodeId) -> Result<(), StoreError> {
    const GIVE_UP_ALL: &str = "update callback_slots set until = 0 where node = $1";
    tx.execute(GIVE_UP_ALL, params![node.0.as_str()]).await.map(drop)
}

async fn read_slots(tx: &Tx<'_>) -> Result<Vec<SlotLease>, StoreError> {
    const SLOTS: &str = "select slot, node, until from callback_slots order by slot";
    let read = |mut row: Row| {
        let slot = usize::try_from(row.int()?).unwrap_or(usize::MAX);
        Ok(SlotLease { slot, node: NodeId(row.text()?), until: row.time()? })
    };
    tx.query(SLOTS, &[]).await?.into_iter().map(read).collect()
}

/// Returns the nodes that serve hosts, or begin to.
async fn serving_nodes(
    tx: &Tx<'_>,
    now: DateTime<Utc>,
    lease: TimeDelta,
) -> Result<Vec<NodeId>, StoreError> {
    const SERVING: &str = "select id from nodes where serves_until > $1 and serves_until <= $2";
    let nodes = tx.query(SERVING, params![now, latest_end(now, lease)]).await?;
    nodes.into_iter().map(|mut row| Ok(NodeId(row.text()?))).collect()
}

fn numbers(slots: SlotSet) -> Value {
    Value::Ints(slots.iter().map(|slot| slot as i64).collect())
}

/// Looks at which hosts in new slots other nodes have claims. The others are served from now on.
async fn begin_new_slots(
    shared: &Db,
    cells: &[Arc<Db>],
    now: DateTime<Utc>,
    terms: SlotTerms,
) -> Result<(), StoreError> {
    let served = &shared.served_hosts;
    let new = served.new_slots(now, terms.request);
    let mut claimed = HashSet::new();
    if new != SlotSet::NONE {
        let period = (now, now + terms.claim + SKEW);
        let found = cells.iter().map(|cell| claimed_hosts::of_others(cell, period));
        for hosts in join_all(found).await {
            match hosts {
                Ok(hosts) => claimed.extend(hosts),
                Err(err) if cells.len() == 1 => return Err(err),
                // Its server may be down for long, and the other cells go on.
                Err(err) => {
                    let error = &err as &dyn Error;
                    warn!(error, "the claims that other nodes have in a cell are not known");
                }
            }
        }
        claimed.retain(|host: &String| new.contains(slot_of(host)));
    }
    served.note_claimed(claimed);
    Ok(())
}
