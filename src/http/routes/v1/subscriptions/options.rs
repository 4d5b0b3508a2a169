//! The options of a subscription, as a call that creates or changes it names them.

use crate::http::kit::rejection::Rejection;
use crate::http::routes::v1::json_body::{JsonBody, reject_field};
use feedgate_core::callback_headers::{BadCallbackHeaders, CallbackHeaders};
use feedgate_core::query::EntryFilter;
use feedgate_core::signing::SecretOverlap;
use feedgate_core::subscription::{Format, Statuses, SubscriptionRequest, Updates};
use feedgate_protocol::signature::SignatureMethod;

/// The fields of options.
pub(super) const FIELDS: [&str; 11] = [
    "format",
    "updates",
    "statuses",
    "sanitize",
    "filter",
    "digest",
    "secret",
    "signature",
    "secretOverlapSeconds",
    CALLBACK.headers,
    CALLBACK.authorization,
];

/// The fields with headers that are sent to a server.
pub(super) struct HeaderFields {
    /// The field with headers by their names.
    pub(super) headers: &'static str,
    /// The field with the header `Authorization`.
    pub(super) authorization: &'static str,
    /// The code of headers that cannot be used.
    code: &'static str,
}

const CALLBACK: HeaderFields = HeaderFields {
    headers: "callbackHeaders",
    authorization: "callbackAuthorization",
    code: "bad_callback_headers",
};

/// The fields with headers for the server of the feed, which belong to the feed.
pub(super) const FEED: HeaderFields = HeaderFields {
    headers: "feedHeaders",
    authorization: "feedAuthorization",
    code: "bad_feed_headers",
};

const FORMATS: [(&str, Format); 3] =
    [("json", Format::Json), ("atom", Format::Atom), ("raw", Format::Raw)];
const UPDATES: [(&str, Updates); 3] =
    [("fresh", Updates::Fresh), ("always", Updates::Always), ("never", Updates::Never)];
const STATUSES: [(&str, Statuses); 3] = [
    ("transitions", Statuses::Transitions),
    ("always", Statuses::Always),
    ("never", Statuses::Never),
];

/// Replaces the options of `request` that the body has. A filter, a secret or headers that are null are
/// removed. Headers that the body does not have are those of the subscription that exists.
pub(super) fn apply(body: &JsonBody, request: &mut SubscriptionRequest) -> Result<(), Rejection> {
    if let Some(format) = body.word("format", &FORMATS)? {
        request.format = format;
    }
    if let Some(updates) = body.word("updates", &UPDATES)? {
        request.updates = updates;
    }
    if let Some(statuses) = body.word("statuses", &STATUSES)? {
        request.statuses = statuses;
    }
    if let Some(is_sanitized) = body.flag("sanitize")? {
        request.is_sanitized = is_sanitized;
    }
    if let Some(digest) = body.flag("digest")? {
        request.digest = digest;
    }
    if body.has("filter") {
        request.filter = filter(body)?;
    }
    apply_signing(body, request)?;
    let held = request.headers.take().unwrap_or_default();
    request.headers = changed_headers(body, &CALLBACK, &held)?;
    check_format(request)
}

/// Returns the headers that the body changes, where `held` are those before; `None` if it changes none.
pub(super) fn changed_headers(
    body: &JsonBody,
    fields: &HeaderFields,
    held: &CallbackHeaders,
) -> Result<Option<CallbackHeaders>, Rejection> {
    let HeaderFields { headers, authorization, code } = *fields;
    let (names_headers, names_authorization) = (body.has(headers), body.has(authorization));
    if !names_headers && !names_authorization {
        return Ok(None);
    }
    let given = body.named_texts(headers)?.unwrap_or_default();
    let is_authorization = |name: &str| name.eq_ignore_ascii_case(CallbackHeaders::AUTHORIZATION);
    let replaces_authorization =
        names_authorization || given.iter().any(|(name, _)| is_authorization(name));
    let kept = held.pairs().filter(|(name, _)| match is_authorization(name) {
        true => !replaces_authorization,
        false => !names_headers,
    });
    let value = body.text(authorization)?.unwrap_or_default();
    let changed = CallbackHeaders::from_pairs(kept.chain(given), value);
    changed.map(Some).map_err(|reason| {
        let is_its = reason == BadCallbackHeaders::Authorization || !names_headers;
        let field = if is_its { authorization } else { headers };
        let sentence = format!("{field} cannot be used: {reason}.");
        Rejection::unprocessable(sentence).with_code(code).with_field(field)
    })
}

/// Rejects options that need entries for a subscription that receives the topic unchanged.
fn check_format(request: &mut SubscriptionRequest) -> Result<(), Rejection> {
    if request.format != Format::Raw {
        return Ok(());
    }
    let needs_entries = [
        ("sanitize", request.is_sanitized),
        ("filter", request.filter.is_some()),
        ("digest", request.digest),
    ];
    if let Some((name, _)) = needs_entries.iter().find(|(_, is_set)| *is_set) {
        let reason = format!("{name} has an effect with the format json or atom only, not raw.");
        return Err(reject_field(name, reason));
    }
    // The raw topic has no place for a status.
    request.statuses = Statuses::Never;
    Ok(())
}

/// Returns the filter in the body.
pub(in crate::http::routes::v1) fn filter(
    body: &JsonBody,
) -> Result<Option<EntryFilter>, Rejection> {
    let Some(text) = body.text("filter")? else { return Ok(None) };
    EntryFilter::parse(text).map(Some).map_err(|reason| {
        let reason = format!("filter cannot be used: {reason}.");
        Rejection::unprocessable(reason).with_code("bad_query").with_field("filter")
    })
}

fn apply_signing(body: &JsonBody, request: &mut SubscriptionRequest) -> Result<(), Rejection> {
    if body.has("secret") {
        request.signing.secret = body.secret("secret")?;
        request.signing.ends_secret = request.signing.secret.is_none();
    }
    if body.has("signature") {
        let methods = SignatureMethod::ALL.map(|method| (method.as_str(), method));
        request.signing.method = body.word("signature", &methods)?;
    }
    let overlap = body.number("secretOverlapSeconds", 0..=SecretOverlap::MAX_S)?;
    request.signing.overlap = overlap.and_then(SecretOverlap::from_secs);
    Ok(())
}
