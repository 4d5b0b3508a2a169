//! Deleting rows that nothing else ends, after the time for which they are kept.

use super::BATCH;
use crate::Db;
use crate::hosts::prune;
use feedgate_core::store::{PruneBefore, StoreError};

/// What was counted for the budgets of networks. Those of accounts are kept, because there are few accounts.
const NETWORKS: &str = "
    delete from account_appends
     where (account_id, stripe) in (select account_id, stripe from account_appends
                                     where account_id < 0 and day < cast($1 as bigint) / 86400000000
                                     order by day limit $2)";

/// What collections had taken in. The cursors of these collections have moved long ago.
const COLLECTED: &str = "
    delete from collected
     where (collection_id, resource_id) in (
           select collection_id, resource_id from collected
            where at < $1 order by at limit $2)
       and at < $1";

const REVOKED_TOKENS: &str = "
    delete from tokens
     where id in (select id from tokens
                   where revoked_at < $1 order by revoked_at limit $2)";
const EXPIRED_TOKENS: &str = "
    delete from tokens
     where id in (select id from tokens
                   where expires_at < $1 order by expires_at limit $2)";

/// Deletes the rows from before the times that `before` names. Returns how many.
pub(super) async fn delete(db: &Db, before: &PruneBefore) -> Result<u64, StoreError> {
    const REFUSALS: &str = "
        delete from refusals
         where resource_id in (select resource_id from refusals
                                where at < $1 order by at limit $2)
           and at < $1";
    const ROBOTS: &str = "
        delete from robots
         where origin in (select origin from robots
                           where fetched_at < $1 order by fetched_at limit $2)
           and fetched_at < $1";
    const MOVES: &str = "
        delete from moves
         where (resource_id, id) in (select resource_id, id from moves
                                      where at < $1 order by at limit $2)";
    const SESSIONS: &str = "
        delete from sessions
         where hash in (select hash from sessions
                         where used_at < $1 order by used_at limit $2)";
    // A node that has reported in the meantime is not deleted.
    const NODES: &str = "
        delete from nodes
         where id in (select id from nodes
                       where seen_at < $1 order by seen_at limit $2)
           and seen_at < $1";
    // A backfill that is started again in the meantime is not deleted.
    const BACKFILLS: &str = "
        delete from backfills
         where resource_id in (select resource_id from backfills
                                where ended_at < $1 order by ended_at limit $2)
           and ended_at < $1";
    const IDEMPOTENCY_KEYS: &str = "
        delete from idempotency_keys
         where (account_id, key_hash) in (select account_id, key_hash from idempotency_keys
                                           where created_at < $1 order by created_at limit $2)";
    let retentions = [
        (REFUSALS, before.host_records),
        (ROBOTS, before.host_records),
        (MOVES, before.moves),
        (REVOKED_TOKENS, before.ended_tokens),
        (EXPIRED_TOKENS, before.ended_tokens),
        (SESSIONS, before.sessions),
        (NODES, before.nodes),
        (BACKFILLS, before.backfills),
        (COLLECTED, before.host_records),
        (NETWORKS, before.network_budgets),
        (IDEMPOTENCY_KEYS, before.idempotency_keys),
    ];
    let mut deleted = match before.host_records {
        Some(before) => prune::prune(db, before).await?,
        None => 0,
    };
    for (sql, before) in retentions {
        if let Some(before) = before {
            deleted += db.delete_in_batches(sql, before, BATCH).await?;
        }
    }
    Ok(deleted)
}
