//! Rows of subscriptions: their columns, and reading them.

use crate::engine::envelope::RowIdentity;
use crate::engine::row::Row;
use crate::engine::sql::Value;
use crate::resources::row::topic;
use feedgate_core::account::AccountId;
use feedgate_core::callback_headers::CallbackHeaders;
use feedgate_core::delivery_health::{AttemptResponse, DeliveryHealth, LastAttempt};
use feedgate_core::query::EntryFilter;
use feedgate_core::record::Seq;
use feedgate_core::registrant::RegistrantNetwork;
use feedgate_core::resource::ResourceId;
use feedgate_core::signing::{PreviousSecret, Secret, Signing};
use feedgate_core::store::StoreError;
use feedgate_core::subscription::{
    Format, Statuses, Subscription, SubscriptionId, SubscriptionRequest, Updates,
};
use feedgate_core::topic::{Callback, Topic};
use feedgate_protocol::Protocol;
use feedgate_protocol::signature::SignatureMethod;

/// The columns of a subscription `s` without its resource, as [`subscription_to`] reads them.
macro_rules! own_columns {
    () => {
        "s.id, s.account_id, s.alias, s.callback, s.protocol, s.procedure, s.format,
         s.updates, s.statuses, s.is_sanitized, s.acknowledged_status, s.secret, s.signature_method,
         s.previous_secret, s.previous_secret_until, s.cursor, s.failures, s.failing_since,
         s.lease_until, s.created_at, s.entry_filter, s.registrant_network, s.header_secret,
         s.reading_list"
    };
}
pub(crate) use own_columns;

/// The columns of a subscription `s` to a resource `r`, as [`subscription`] reads them.
macro_rules! subscription_columns {
    () => {
        concat!("s.resource_id, r.topic, ", $crate::delivery::row::own_columns!())
    };
}
pub(crate) use subscription_columns;

/// The columns with the options of a subscription, which a renewal replaces.
pub(super) const OPTIONS: [&str; 6] =
    ["procedure", "format", "updates", "statuses", "is_sanitized", "entry_filter"];

/// Returns the values of [`OPTIONS`] that a request has, in their order.
pub(super) fn option_values(request: &SubscriptionRequest) -> [Value; OPTIONS.len()] {
    [
        request.protocol.procedure().into(),
        request.format.as_str().into(),
        request.updates.as_str().into(),
        request.statuses.as_str().into(),
        request.is_sanitized.into(),
        request.filter.as_ref().map(EntryFilter::as_str).into(),
    ]
}

/// The column with the secret of a subscription.
pub(crate) const SECRET: &str = "subscriptions.secret";
/// The column with the secret before it.
pub(crate) const PREVIOUS_SECRET: &str = "subscriptions.previous_secret";

/// The column with the headers for the callback of a subscription.
pub(crate) const HEADERS: &str = "subscriptions.header_secret";

/// Returns what identifies the row of a subscription in its table, and that of a request for it, but for
/// the number of its account, which an import changes.
pub(crate) fn subscriber(topic: &Topic, callback: &Callback, protocol: &Protocol) -> RowIdentity {
    RowIdentity::new(&[
        topic.as_str(),
        topic.alias().unwrap_or_default(),
        callback.as_str(),
        protocol.as_str(),
    ])
}

/// Returns the stored number of an account, which is 0 for open subscriptions.
pub(crate) fn number(account: Option<AccountId>) -> i64 {
    account.unwrap_or(AccountId::NOBODY).0
}

/// Reads a stored account number.
pub(crate) fn account(row: &mut Row) -> Result<Option<AccountId>, StoreError> {
    let number = row.int()?;
    Ok((number != 0).then_some(AccountId(number)))
}

/// Reads the numbers of a resource and of a subscription to it.
pub(crate) fn subscription_id(row: &mut Row) -> Result<SubscriptionId, StoreError> {
    Ok(SubscriptionId { resource: ResourceId(row.int()?), number: row.int()? })
}

/// Reads `subscription_columns!`.
pub(crate) fn subscription(row: &mut Row) -> Result<Subscription, StoreError> {
    let resource = ResourceId(row.int()?);
    let topic = topic(row)?;
    subscription_to(resource, topic, row, None)
}

/// Reads `own_columns!` of a subscription to this resource. Its callback is probably at the same server
/// as `neighbour`.
pub(crate) fn subscription_to(
    resource: ResourceId,
    topic: Topic,
    row: &mut Row,
    neighbour: Option<&Callback>,
) -> Result<Subscription, StoreError> {
    let id = SubscriptionId { resource, number: row.int()? };
    let account = account(row)?;
    let topic = topic.with_alias(alias(row)?);
    let callback = callback_beside(row, neighbour)?;
    let protocol = protocol(row)?;
    let (format, updates) = (row.word(Format::from_word)?, row.word(Updates::from_word)?);
    let statuses = row.word(Statuses::from_word)?;
    let (is_sanitized, status_told) = (row.int()? != 0, row.int()?);
    let signing = signing(row, || subscriber(&topic, &callback, &protocol))?;
    let (cursor, failures) = (Seq(row.int()?), row.small()?);
    let (failing_since, lease_until, created_at) = (row.opt_time()?, row.time()?, row.time()?);
    let filter = row.opt_text()?.map(EntryFilter::from_stored);
    let registrant = RegistrantNetwork::from_number(row.int()?);
    let headers = headers(row, HEADERS, || subscriber(&topic, &callback, &protocol))?;
    let headers = headers.unwrap_or_default();
    let reading_list = row.text()?;
    Ok(Subscription {
        id,
        account,
        topic,
        callback,
        protocol,
        format,
        updates,
        statuses,
        is_sanitized,
        filter,
        status_told,
        signing,
        headers,
        cursor,
        failures,
        failing_since,
        lease_until,
        created_at,
        registrant,
        reading_list,
    })
}

/// The columns of the delivery health of a subscription `s` to a resource `r`, as [`health`] reads them. A
/// subscription that is ready is claimed with its backlog.
macro_rules! health_columns {
    () => {
        concat!(
            "s.attempted_at, s.attempt_status, s.attempt_excerpt,
             case when ",
            $crate::delivery::owed::is_owed!(),
            "     and s.paused_at is null
                  then case when s.retry_at > ",
            $crate::delivery::owed::next_change!(),
            "               then null
                            else coalesce(s.retry_at, ",
            $crate::delivery::row::of_backlog!("due_at"),
            ") end end,
             s.paused_at, s.is_suspended,
             case when ",
            $crate::delivery::owed::is_owed!(),
            "     and s.paused_at is null and s.retry_at is null then ",
            $crate::delivery::row::of_backlog!("claimed_until"),
            " end, s.digest_at, ",
            $crate::delivery::owed::owed!()
        )
    };
}
pub(crate) use health_columns;

/// A column of the backlog of a subscription `s`.
macro_rules! of_backlog {
    ($column:literal) => {
        concat!(
            "(select b.",
            $column,
            " from backlogs b
               where b.resource_id = s.resource_id and b.account_id = s.account_id
                 and b.host = s.host)"
        )
    };
}
pub(crate) use of_backlog;

/// Reads `health_columns!`.
pub(crate) fn health(row: &mut Row) -> Result<DeliveryHealth, StoreError> {
    let at = row.opt_time()?;
    let status = Some(row.int()?).filter(|status| *status != 0);
    let status = status.and_then(|status| u16::try_from(status).ok());
    let response = AttemptResponse { status, excerpt: row.text()? };
    Ok(DeliveryHealth {
        last_attempt: at.map(|at| LastAttempt { at, response }),
        due_at: row.opt_time()?,
        paused_at: row.opt_time()?,
        is_suspended: row.int()? != 0,
        claimed_until: row.opt_time()?,
        next_digest_at: row.opt_time()?,
        owed: Seq(row.int()?),
    })
}

/// Reads the alias of a topic.
pub(crate) fn alias(row: &mut Row) -> Result<Option<String>, StoreError> {
    Ok(Some(row.text()?).filter(|alias| !alias.is_empty()))
}

/// Reads a callback.
pub(crate) fn callback(row: &mut Row) -> Result<Callback, StoreError> {
    callback_beside(row, None)
}

/// Reads a callback that is probably at the same server as `neighbour`.
fn callback_beside(row: &mut Row, neighbour: Option<&Callback>) -> Result<Callback, StoreError> {
    Callback::parse_beside(row.text()?, neighbour)
        .map_err(|err| StoreError::Corrupt(err.to_string()))
}

/// Reads a protocol and its procedure.
pub(crate) fn protocol(row: &mut Row) -> Result<Protocol, StoreError> {
    let (word, procedure) = (row.text()?, row.text()?);
    let protocol = Protocol::from_words(&word, &procedure);
    protocol.ok_or_else(|| StoreError::Corrupt(format!("unknown protocol {word:?}")))
}

/// Reads how the deliveries of a subscription are signed.
fn signing(row: &mut Row, identity: impl Fn() -> RowIdentity) -> Result<Signing, StoreError> {
    let secret = secret(row, SECRET, &identity)?;
    let method = signature_method(row)?;
    let previous = self::secret(row, PREVIOUS_SECRET, &identity)?;
    let until = row.opt_time()?;
    let previous = previous.zip(until).map(|(secret, until)| PreviousSecret { secret, until });
    Ok(Signing { secret, method, previous })
}

/// Reads the hash function of a signature; `None` if it is the gateway's.
pub(crate) fn signature_method(row: &mut Row) -> Result<Option<SignatureMethod>, StoreError> {
    let Some(word) = row.opt_text()? else { return Ok(None) };
    let method = SignatureMethod::from_word(&word);
    method.map(Some).ok_or_else(|| StoreError::Corrupt(format!("unknown signature {word:?}")))
}

/// Reads a secret from a column of a row; `identity` returns what identifies the row.
pub(crate) fn secret(
    row: &mut Row,
    column: &'static str,
    identity: impl FnOnce() -> RowIdentity,
) -> Result<Option<Secret>, StoreError> {
    let Some(key) = row.opt_secret(column, identity)? else { return Ok(None) };
    Secret::new(key).map(Some).map_err(|err| StoreError::Corrupt(err.to_string()))
}

/// Reads the headers for a callback from a column of a row, which `identity` identifies.
pub(crate) fn headers(
    row: &mut Row,
    column: &'static str,
    identity: impl FnOnce() -> RowIdentity,
) -> Result<Option<CallbackHeaders>, StoreError> {
    let Some(text) = row.opt_secret(column, identity)? else { return Ok(None) };
    let headers = CallbackHeaders::from_stored(&text);
    headers.map(Some).ok_or_else(|| StoreError::Corrupt(format!("{column} has no headers")))
}
