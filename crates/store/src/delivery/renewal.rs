//! Renewing subscriptions.

use std::sync::LazyLock;

use chrono::{DateTime, Utc};

use crate::Store;
use crate::delivery::generations::next_generation;
use crate::delivery::reading_lists;
use crate::delivery::row::{
    HEADERS, OPTIONS, PREVIOUS_SECRET, SECRET, number, option_values, subscriber, subscription,
    subscription_columns,
};
use crate::delivery::{backlogs, digests, listing};
use crate::engine::columns::assigned;
use crate::engine::sql::params;
use crate::engine::tx::Tx;
use crate::resources::row;
use feedgate_core::callback_headers::CallbackHeaders;
use feedgate_core::resource::Resource;
use feedgate_core::signing::{Secret, Signing};
use feedgate_core::store::{ListedSubscription, StoreError};
use feedgate_core::subscription::{Format, Subscription, SubscriptionId, SubscriptionRequest};
use feedgate_protocol::signature::SignatureMethod;

/// Changing the options of subscriptions.
impl Store {
    /// Renews the subscription with this number, with the options that `change` returns for it. No other
    /// request changes it in between, and one that has ended stays ended: returns `false` then. The inner
    /// error is that of `change`, after which nothing is changed.
    pub async fn change_subscription<C, E>(
        &self,
        id: SubscriptionId,
        change: C,
        now: DateTime<Utc>,
    ) -> Result<Result<bool, E>, StoreError>
    where
        C: FnOnce(&ListedSubscription) -> Result<SubscriptionRequest, E> + Clone + Send + 'static,
        E: Send + 'static,
    {
        self.of_number(id.resource.0)
            .write(move |tx| Box::pin(renew_existing(tx, id, change, now)))
            .await
    }
}

async fn renew_existing<C, E>(
    tx: &Tx<'_>,
    id: SubscriptionId,
    change: C,
    now: DateTime<Utc>,
) -> Result<Result<bool, E>, StoreError>
where
    C: FnOnce(&ListedSubscription) -> Result<SubscriptionRequest, E>,
{
    row::lock(tx, vec![id.resource.0]).await?;
    let Some(known) = listing::listed(tx, id).await? else { return Ok(Ok(false)) };
    match change(&known) {
        Ok(request) => {
            renew(tx, &known.resource, &known.subscription, &request, now).await?;
            reading_lists::follow_list(tx, &known.subscription, &request, now).await?;
            Ok(Ok(true))
        }
        Err(refused) => Ok(Err(refused)),
    }
}

/// Renews the subscription that exists with the account, callback, protocol and alias of `request`.
pub(super) async fn renew_known(
    tx: &Tx<'_>,
    resource: &Resource,
    request: &SubscriptionRequest,
    now: DateTime<Utc>,
) -> Result<Subscription, StoreError> {
    const FIND: &str = concat!(
        "select ",
        subscription_columns!(),
        " from subscriptions s
          join resources r on r.id = s.resource_id
         where s.resource_id = $1 and s.account_id = $2 and s.callback = $3
           and s.protocol = $4 and s.alias = $5"
    );
    let key = params![
        resource.id.0,
        number(request.account),
        request.callback.as_str(),
        request.protocol.as_str(),
        request.topic.alias().unwrap_or_default()
    ];
    let vanished = || StoreError::Corrupt("a subscription vanished".into());
    let known = subscription(&mut tx.first(FIND, key).await?.ok_or_else(vanished)?)?;
    renew(tx, resource, &known, request, now).await?;
    subscription(&mut tx.first(FIND, key).await?.ok_or_else(vanished)?)
}

/// Returns the number of the newest record or body, where a new subscription with this format begins.
pub(super) fn newest_number(resource: &Resource, format: Format) -> i64 {
    match format {
        Format::Raw => resource.body_version,
        Format::Atom | Format::Json | Format::Fitting => resource.head.0,
    }
}

/// Returns how a subscription is signed after a renewal, and when its lease ends. An account decides
/// about both. An open subscription has no owner, so that only who knows its secret can shorten the
/// lease or end the secret.
fn rights(
    known: &Subscription,
    request: &SubscriptionRequest,
    now: DateTime<Utc>,
) -> (Signing, DateTime<Utc>) {
    let lease_until = request.lease.end(now);
    if known.account.is_some() {
        return (known.signing.renew(&request.signing, now), lease_until);
    }
    let signing = known.signing.renew_open(&request.signing, known.lease_until, now);
    match known.signing.is_proven_by(&request.signing, now) {
        true => (signing, lease_until),
        false => (signing, lease_until.max(known.lease_until)),
    }
}

/// Replaces the options of a subscription, whose values come after its own parameters.
static RENEW: LazyLock<String> = LazyLock::new(|| {
    let options = assigned(&OPTIONS, 15);
    format!(
        "update subscriptions
           set secret = $3, cursor = $4, lease_until = $5, acknowledged_status = $7,
               failures = 0, failed_changes = 0, failed_upto = 0, failing_since = null,
               retry_at = null,
               header_secret = coalesce($13, header_secret), reading_list = $14,
               signature_method = $8, previous_secret = $9, previous_secret_until = $10,
               digest_at = case when cast($11 as bigint) is null then null
                                else coalesce(digest_at, $11) end,
               replayed_upto = case when cast($6 as bigint) = 0 then replayed_upto else 0 end,
               paused_at = case when is_suspended = 1 then null else paused_at end,
               is_suspended = 0,
               registrant_network = case when registrant_network = 0 then $12
                                         else registrant_network end, {options}, {generation}
         where resource_id = $1 and id = $2
        returning case when paused_at is null then 0 else 1 end",
        generation = next_generation!()
    )
});

/// Replaces the options with those of the request, resets failures, ends a suspension, and retries at
/// once a delivery that waited for a retry.
async fn renew(
    tx: &Tx<'_>,
    resource: &Resource,
    known: &Subscription,
    request: &SubscriptionRequest,
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    let owed = newest_number(resource, request.format);
    let behind = known.cursor.0 < newest_number(resource, known.format);
    let changed = (known.format == Format::Raw) != (request.format == Format::Raw);
    // A cursor over records has no meaning for bodies, nor the other way round: a subscription that
    // was behind in one is owed the newest of the other.
    let cursor = match (changed, behind) {
        (false, _) => known.cursor.0,
        (true, true) => (owed - 1).max(0),
        (true, false) => owed,
    };
    let status = request.statuses.version(&resource.status);
    let status_told = if known.statuses == request.statuses { known.status_told } else { status };
    let (signing, lease_until) = rights(known, request, now);
    let previous = signing.previous.as_ref();
    let identity = subscriber(&known.topic, &known.callback, &known.protocol);
    let secret = signing.secret.as_ref().map(Secret::expose);
    let secret = tx.seal(SECRET, &identity, secret)?;
    let previous_secret = previous.map(|previous| previous.secret.expose());
    let previous_secret = tx.seal(PREVIOUS_SECRET, &identity, previous_secret)?;
    let headers = request.headers.as_ref().map(CallbackHeaders::expose);
    let headers = tx.seal(HEADERS, &identity, headers.as_deref())?;
    let kept_list = known.reading_list.as_str();
    let kept_list = if known.follows_list() { kept_list } else { "" };
    let reading_list = request.reading_list.as_deref().unwrap_or(kept_list);
    let own = params![
        known.id.resource.0,
        known.id.number,
        secret,
        cursor,
        lease_until,
        i64::from(changed),
        status_told,
        signing.method.map(SignatureMethod::as_str),
        previous_secret,
        previous.map(|previous| previous.until),
        digests::first(request, now),
        request.registrant.as_number(),
        headers,
        reading_list,
    ];
    let params = [own.as_slice(), &option_values(request)].concat();
    let renewed = tx.first(&RENEW, &params).await?;
    let is_paused = renewed.map_or(Ok(0), |mut row| row.int())? != 0;
    if !is_paused && (cursor < owed || status_told < status) {
        backlogs::mark_one(tx, known.id, now).await?;
    }
    Ok(())
}
