//! The columns of `intents`: what is stored of a request that has yet to be verified.

use std::sync::LazyLock;
use std::time::Duration;

use crate::delivery::row::{
    self, account, alias, callback, headers, number, signature_method, subscriber,
};
use crate::engine::columns::{columns, excluded, inserted};
use crate::engine::envelope::RowIdentity;
use crate::engine::row::Row;
use crate::engine::sql::Value;
use crate::resources::row::topic as topic_column;
use feedgate_core::intent::{Intent, IntentMode, VerifyToken};
use feedgate_core::query::EntryFilter;
use feedgate_core::registrant::RegistrantNetwork;
use feedgate_core::signing::{Secret, SecretOverlap, SigningRequest};
use feedgate_core::store::StoreError;
use feedgate_core::subscription::{Format, Lease, Statuses, SubscriptionRequest, Updates};
use feedgate_protocol::Protocol;
use feedgate_protocol::signature::SignatureMethod;

/// The column with the secret that is requested.
pub(crate) const SECRET: &str = "intents.secret";
/// The column with the headers that are requested for the callback.
pub(crate) const HEADERS: &str = "intents.header_secret";
/// The column with the text that is sent back to the callback.
pub(crate) const VERIFY_TOKEN: &str = "intents.verify_token";

/// The columns that decide when an intent is verified, and that are written with it.
const SCHEDULE: &[&str] = &["hash", "host", "due_at", "claim_token"];

/// An intent with its secrets as they are stored.
#[derive(Debug)]
pub(super) struct StoredIntent<'i> {
    pub(super) intent: &'i Intent,
    pub(super) secret: Option<String>,
    pub(super) verify_token: Option<String>,
    pub(super) headers: Option<String>,
}

columns! {
    names NAMES;
    select COLUMNS = ", attempts", "intents", "";
    values fn values(stored: &StoredIntent<'_>);
    read fn read_intent(row) -> Intent {
        Intent {
            mode, verify_token, backfill, parameters, is_verified,
            request: SubscriptionRequest {
                account, format, updates, statuses, is_sanitized, filter, digest, lease, registrant,
                reading_list,
                signing: SigningRequest { secret, ends_secret, method, overlap }, headers,
                ..SubscriptionRequest::new(topic, callback, protocol)
            },
        }
    }
    "mode" stored.intent.mode.as_str() => mode = row.word(IntentMode::from_word)?;
    "account_id" number(stored.request().account) => account = account(row)?;
    "topic" stored.request().topic.as_str() => topic = topic_column(row)?;
    "alias" stored.request().topic.alias().unwrap_or_default() => topic = topic.with_alias(alias(row)?);
    "callback" stored.request().callback.as_str() => callback = callback(row)?;
    "protocol" stored.request().protocol.as_str() => word = row.text()?;
    "procedure" stored.request().protocol.procedure() => protocol = protocol(&word, &row.text()?)?;
    "format" stored.request().format.as_str() => format = row.word(Format::from_word)?;
    "updates" stored.request().updates.as_str() => updates = row.word(Updates::from_word)?;
    "statuses" stored.request().statuses.as_str() => statuses = row.word(Statuses::from_word)?;
    "is_sanitized" stored.request().is_sanitized => is_sanitized = row.int()? != 0;
    "entry_filter" stored.request().filter.as_ref().map(EntryFilter::as_str)
        => filter = row.opt_text()?.map(EntryFilter::from_stored);
    "digest" stored.request().digest => digest = row.int()? != 0;
    "lease_s" seconds(stored.request().lease) => lease = Lease::from(Duration::from_secs(row.count()?));
    "secret" stored.secret.clone()
        => (secret, ends_secret) = secret(row, || subscriber(&topic, &callback, &protocol))?;
    "signature_method" stored.request().signing.method.map(SignatureMethod::as_str)
        => method = signature_method(row)?;
    "secret_overlap_s" overlap_seconds(stored.request()) => overlap = overlap(row)?;
    "verify_token" stored.verify_token.clone()
        => verify_token = verify_token(row, || subscriber(&topic, &callback, &protocol))?;
    "header_secret" stored.headers.clone()
        => headers = headers(row, HEADERS, || subscriber(&topic, &callback, &protocol))?;
    "backfill" stored.intent.backfill => backfill = row.int()? != 0;
    "parameters" stored.intent.parameters.as_str() => parameters = row.text()?;
    "registrant_network" stored.request().registrant.as_number()
        => registrant = RegistrantNetwork::from_number(row.int()?);
    "reading_list" stored.request().reading_list.as_deref() => reading_list = row.opt_text()?;
    "is_verified" stored.intent.is_verified => is_verified = row.int()? != 0;
}

/// Stores an intent under a new number. A conflict is possible only if another node has just inserted the same
/// intent.
pub(super) static KEEP: LazyLock<String> = LazyLock::new(|| {
    let names = [SCHEDULE, NAMES].concat();
    let (inserted, replaced) = (inserted(&names), excluded(&names[1..]));
    format!(
        "insert into intents {inserted}
             on conflict (hash) do update set id = excluded.id, attempts = 0, {replaced}
         returning id"
    )
});

impl StoredIntent<'_> {
    fn request(&self) -> &SubscriptionRequest {
        &self.intent.request
    }

    /// Returns the parameters of [`KEEP`]: `schedule` has the values of hash, host, due time and token.
    pub(super) fn params(&self, schedule: [Value; SCHEDULE.len()]) -> Vec<Value> {
        schedule.into_iter().chain(values(self)).collect()
    }
}

/// Returns the text that stands for the requested secret: none if it stays the same, and an empty one if
/// it ends.
pub(super) fn secret_text(request: &SubscriptionRequest) -> Option<&str> {
    let given = request.signing.secret.as_ref().map(Secret::expose);
    given.or(request.signing.ends_secret.then_some(""))
}

/// Reads the requested secret, and whether the one before ends without it.
fn secret(
    row: &mut Row,
    identity: impl FnOnce() -> RowIdentity,
) -> Result<(Option<Secret>, bool), StoreError> {
    let secret = row::secret(row, SECRET, identity)?;
    let ends_secret = secret.as_ref().is_some_and(|secret| secret.expose().is_empty());
    Ok((secret.filter(|_| !ends_secret), ends_secret))
}

fn seconds(lease: Lease) -> i64 {
    i64::try_from(lease.as_secs()).unwrap_or(i64::MAX)
}

fn overlap_seconds(request: &SubscriptionRequest) -> Option<i64> {
    request.signing.overlap.and_then(|overlap| i64::try_from(overlap.as_secs()).ok())
}

fn protocol(word: &str, procedure: &str) -> Result<Protocol, StoreError> {
    let protocol = Protocol::from_words(word, procedure);
    protocol.ok_or_else(|| StoreError::Corrupt(format!("unknown protocol {word:?}")))
}

/// Reads the overlap that was requested for a secret.
fn overlap(row: &mut Row) -> Result<Option<SecretOverlap>, StoreError> {
    let Some(seconds) = row.opt_int()? else { return Ok(None) };
    let overlap = u64::try_from(seconds).ok().and_then(SecretOverlap::from_secs);
    overlap.map(Some).ok_or_else(|| StoreError::Corrupt(format!("an overlap of {seconds} s")))
}

fn verify_token(
    row: &mut Row,
    identity: impl FnOnce() -> RowIdentity,
) -> Result<Option<VerifyToken>, StoreError> {
    let token = row.opt_secret(VERIFY_TOKEN, identity)?.map(VerifyToken::parse).transpose();
    token.map_err(|err| StoreError::Corrupt(err.to_string()))
}
