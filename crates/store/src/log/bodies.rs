//! The newest raw body of each resource, and what it costs those for whom it is stored.

use sha2::{Digest as _, Sha256};

use crate::engine::sql::params;
use crate::engine::tx::Tx;
use feedgate_core::record::Digest;
use feedgate_core::resource::ResourceId;
use feedgate_core::store::StoreError;
use feedgate_feed::Body;

/// A body that is stored.
pub(super) struct KeptBody {
    pub(super) version: i64,
    /// How many bytes of a budget it costs: what it takes more than the one before, and, each time that it
    /// is replaced, what makes it larger than most.
    pub(super) cost_bytes: u64,
}

impl KeptBody {
    /// Returns the cost of a body of `bytes` that replaces one of `before`.
    fn cost(bytes: usize, before: u64) -> u64 {
        let bytes = bytes as u64;
        let cost = bytes.saturating_sub(before).max(bytes.saturating_sub(FREE_BODY_BYTES));
        if cost < LEAST_BODY_COST_BYTES { 0 } else { cost }
    }
}

/// The size up to which a body may be replaced as often as its resource is fetched: many feeds name the time
/// of the request.
const FREE_BODY_BYTES: u64 = 256 << 10;
/// The cost from which on a body is charged: looking for those who pay costs as much.
const LEAST_BODY_COST_BYTES: u64 = 4 << 10;

/// Stores the newest body. Its version is still `version` if the bytes, or their semantic digest, are
/// unchanged (rule P11).
pub(super) async fn keep_body(
    tx: &Tx<'_>,
    id: ResourceId,
    version: i64,
    body: Body,
    semantic_digest: Option<Digest>,
) -> Result<KeptBody, StoreError> {
    const KEPT: &str = "
        select hash, coalesce(semantic_digest, hash), cast(length(bytes) as bigint)
          from bodies where resource_id = $1";
    const KEEP: &str = "
        insert into bodies (resource_id, version, content_type, hash, semantic_digest, bytes)
        values ($1, $2, $3, $4, $5, $6)
            on conflict (resource_id) do update
           set version = excluded.version, content_type = excluded.content_type,
               hash = excluded.hash, semantic_digest = excluded.semantic_digest, bytes = excluded.bytes";
    let hash = Sha256::digest(&body.bytes).to_vec();
    let semantic_digest =
        semantic_digest.map_or_else(|| hash.clone(), |semantic_digest| semantic_digest.0.to_vec());
    let (mut now, mut before) = (version + 1, 0);
    if let Some(mut kept) = tx.first(KEPT, params![id.0]).await? {
        let is_same = kept.blob()? == hash;
        if is_same || kept.blob()? == semantic_digest {
            now = version;
        }
        if is_same {
            return Ok(KeptBody { version, cost_bytes: 0 });
        }
        before = kept.count()?;
    }
    let cost_bytes = KeptBody::cost(body.bytes.len(), before);
    let params = params![id.0, now, body.content_type, hash, semantic_digest, body.bytes];
    tx.execute(KEEP, params).await?;
    Ok(KeptBody { version: now, cost_bytes })
}
