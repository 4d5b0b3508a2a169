//! The hosts of callbacks at which other nodes have claimed backlogs: they may be sending to them.

use std::collections::HashSet;

use chrono::{DateTime, Utc};

use crate::Db;
use crate::engine::sql::params;
use feedgate_core::claim::ClaimToken;
use feedgate_core::store::StoreError;

/// The number of rows that are read together.
const CHUNK: usize = 512;

/// Returns the hosts at which other nodes have claims at `now`, none of which lasts beyond `until`. They are as
/// many as all nodes have in hand.
pub(crate) async fn of_others(
    db: &Db,
    (now, until): (DateTime<Utc>, DateTime<Utc>),
) -> Result<HashSet<String>, StoreError> {
    // The end of a claim is its due time.
    const CLAIMED: &str = "
        select host, claim_token, due_at, number
          from backlogs
         where (due_at, number) > ($1, $2) and due_at <= $3 and claim_token <> 0
         order by due_at, number
         limit $4";
    let claims = db.claims.clone();
    let found = db.read(move |tx| {
        Box::pin(async move {
            let (mut hosts, mut position) = (HashSet::new(), (now.timestamp_micros(), i64::MAX));
            loop {
                let params = params![position.0, position.1, until, CHUNK as i64];
                let rows = tx.query(CLAIMED, params).await?;
                let is_end = rows.len() < CHUNK;
                for mut row in rows {
                    let (host, token) = (row.text()?, ClaimToken(row.int()?));
                    position = (row.int()?, row.int()?);
                    if !claims.is_own(token) {
                        hosts.insert(host);
                    }
                }
                if is_end {
                    return Ok(hosts);
                }
            }
        })
    });
    found.await
}
