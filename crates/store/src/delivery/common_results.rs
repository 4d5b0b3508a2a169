//! Successful deliveries with the same result, of which one statement stores many.
//!
//! A change with thousands of subscribers ends in the same way for nearly all of them. PostgreSQL needs
//! a third of the time for such an update if it gets the values once, and not for each row.

use chrono::{DateTime, Utc};
use foldhash::{HashMap, HashMapExt as _};

use crate::delivery::result_columns::{Newest, range_columns, status_code};
use crate::engine::row::Row;
use crate::engine::sql::params;
use crate::engine::tx::Tx;
use feedgate_core::store::{DeliveryOutcome, DeliveryResult, StoreError};
use feedgate_core::subscription::SubscriptionId;

/// The least number of deliveries that are worth a statement of their own.
const FEWEST: usize = 8;

/// The result of some deliveries of one resource.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct CommonResult<'r> {
    resource: i64,
    /// The last number that was acknowledged.
    cursor: i64,
    /// The version of the status that was sent.
    status: i64,
    code: i64,
    excerpt: &'r str,
    newest: Newest,
}

/// Groups of successful deliveries, each with its common result.
#[derive(Debug, Default)]
pub(super) struct CommonResults<'r> {
    groups: HashMap<CommonResult<'r>, Vec<SubscriptionId>>,
}

impl<'r> CommonResults<'r> {
    /// Takes those of `results` out that are worth storing together. Each has the newest numbers of its
    /// resource.
    pub(super) fn take_from(results: &mut Vec<(&'r DeliveryResult, Newest)>) -> CommonResults<'r> {
        let mut groups: HashMap<CommonResult<'r>, Vec<SubscriptionId>> = HashMap::new();
        for (result, newest) in results.iter() {
            if let Some(common) = CommonResult::new(result, *newest) {
                groups.entry(common).or_default().push(result.id);
            }
        }
        groups.retain(|_, ids| ids.len() >= FEWEST);
        if !groups.is_empty() {
            results.retain(|(result, newest)| {
                let common = CommonResult::new(result, *newest);
                common.is_none_or(|common| !groups.contains_key(&common))
            });
        }
        CommonResults { groups }
    }

    /// Stores the results. Returns the subscriptions that are owed more, each with 1; on SQLite also the
    /// others, with 0.
    pub(super) async fn store(
        self,
        tx: &Tx<'_>,
        now: DateTime<Utc>,
    ) -> Result<Vec<Row>, StoreError> {
        // Few are owed more, and PostgreSQL returns these alone.
        const DELIVERED: &str = "
            {postgres with delivered as (}
            update subscriptions
               set attempted_at = case when cast($4 as bigint) < 0 then attempted_at
                                       else cast($1 as bigint) end,
                   attempt_status = case when cast($4 as bigint) < 0 then attempt_status
                                         else cast($4 as bigint) end,
                   attempt_excerpt = case when cast($4 as bigint) < 0 then attempt_excerpt
                                          else cast($5 as text) end,
                   failures = 0, failed_changes = 0, failing_since = null, retry_at = null,
                   acknowledged = acknowledged
                                  + case when cast($4 as bigint) < 0 then 0 else 1 end,
                   acknowledged_status = case when cast($3 as bigint) > acknowledged_status
                                              then cast($3 as bigint)
                                              else acknowledged_status end,
                   cursor = case when cast($2 as bigint) > cursor then cast($2 as bigint)
                                 else cursor end
            {from rows}
             where subscriptions.resource_id = {given resource_id}
               and subscriptions.id >= {given first_id} and subscriptions.id <= {given last_id}
            returning subscriptions.resource_id, subscriptions.id,
                      case when paused_at is null
                                and (cursor < case when format = 'raw' then cast($7 as bigint)
                                                   else cast($6 as bigint) end
                                     or cast($3 as bigint) < case statuses
                                            when 'always' then cast($8 as bigint)
                                            when 'transitions' then cast($9 as bigint) else 0 end
                                    and acknowledged_status < case statuses
                                            when 'always' then cast($8 as bigint)
                                            when 'transitions' then cast($9 as bigint) else 0 end)
                           then 1 else 0 end as is_owed_more
            {postgres ) select resource_id, id, is_owed_more from delivered where is_owed_more = 1}";
        let mut rows = Vec::new();
        for (common, ids) in self.groups {
            let CommonResult { cursor, status, code, excerpt, newest, .. } = common;
            let [head, body_version, status_version, announced] = newest;
            let columns = range_columns(ids);
            #[rustfmt::skip]
            let params = params![
                now, cursor, status, code, excerpt, head, body_version, status_version, announced
            ];
            rows.extend(tx.query_rows(DELIVERED, params, &columns).await?);
        }
        Ok(rows)
    }
}

impl<'r> CommonResult<'r> {
    /// Returns what the result of a delivery may have in common with others; `None` if it failed.
    fn new(result: &'r DeliveryResult, newest: Newest) -> Option<CommonResult<'r>> {
        let DeliveryOutcome::Delivered { cursor, status } = result.outcome else { return None };
        let excerpt = result.response.as_ref().map(|response| response.excerpt.as_str());
        Some(CommonResult {
            resource: result.id.resource.0,
            cursor: cursor.0,
            status,
            code: status_code(result),
            excerpt: excerpt.unwrap_or_default(),
            newest,
        })
    }
}
