//! The parameters of a request to the hub (WebSub `#subscriber-sends-subscription-request`).

use crate::http::kit::callback_credentials::PARAMETERS;
use crate::http::kit::params;
use crate::http::kit::rejection::Rejection;
use crate::http::routes::discovered_feeds;
use crate::subscriptions::{Follow, Verification};
use feedgate_core::intent::{Intent, IntentMode, VerifyToken};
use feedgate_core::signing::{BadSecret, Secret, SigningRequest};
use feedgate_core::subscription::{Lease, SubscriptionRequest};
use feedgate_core::topic::{Callback, Topic};
use feedgate_protocol::Protocol;
use feedgate_protocol::form::Form;

/// Returns what a request to subscribe or to unsubscribe is for.
pub(super) fn intent(form: &Form, mode: IntentMode) -> Result<Intent, Rejection> {
    let topic = whole_address(form, "hub.topic")?;
    let topic = Topic::parse(topic)
        .map_err(|reason| Rejection::bad_request(format!("hub.topic cannot be used: {reason}.")))?;
    let callback = whole_address(form, "hub.callback")?;
    let callback = Callback::parse(callback).map_err(|reason| {
        Rejection::bad_request(format!("hub.callback cannot be used: {reason}."))
    })?;
    // A secret and a lease concern subscriptions only, and many clients send one form for both.
    let is_new = mode == IntentMode::Subscribe;
    reject_sanitize(form)?;
    reject_filter(form)?;
    reject_callback_credentials(form)?;
    let requested = SubscriptionRequest {
        signing: if is_new { signing(form)? } else { SigningRequest::default() },
        lease: Lease::websub(if is_new { lease(form)? } else { None }),
        ..SubscriptionRequest::new(topic, callback, Protocol::WebSub)
    };
    let verify_token = form.get_verbatim("hub.verify_token").map(VerifyToken::parse).transpose();
    let verify_token = verify_token.map_err(|reason| {
        Rejection::bad_request(format!("hub.verify_token cannot be used: {reason}."))
    })?;
    let parameters = params::for_publisher(form)?;
    let backfill = form.is_set("backfill");
    Ok(Intent { verify_token, backfill, parameters, ..Intent::new(mode, requested) })
}

/// Returns how notifications are to be signed.
fn signing(form: &Form) -> Result<SigningRequest, Rejection> {
    let given = form.get_verbatim("hub.secret").filter(|secret| !secret.is_empty());
    let secret = given.map(|key| Secret::new(key.to_owned()).map_err(reject_secret)).transpose()?;
    let method = params::signature(form).map_err(Rejection::bad_request)?;
    Ok(SigningRequest { secret, method, ..SigningRequest::default() })
}

fn reject_secret(reason: BadSecret) -> Rejection {
    match reason {
        BadSecret::TooLong => Rejection::bad_request(format!(
            "hub.secret must be shorter than {} bytes.",
            Secret::TOO_LONG_BYTES
        )),
        BadSecret::ContainsNul => {
            Rejection::bad_request("hub.secret must not contain the character U+0000.")
        }
        BadSecret::NotBase64 => Rejection::bad_request(
            "hub.secret must continue in base64 after whsec_, or not begin with it.",
        ),
    }
}

/// Rejects a request to sanitize: a hub distributes the topic unchanged (WebSub
/// `#content-distribution`).
fn reject_sanitize(form: &Form) -> Result<(), Rejection> {
    match form.get("sanitize").map(str::to_ascii_lowercase).as_deref() {
        None | Some("" | "false" | "0" | "no" | "off") => Ok(()),
        Some("true" | "1" | "yes" | "on") => Err(Rejection::bad_request(
            "sanitize has no effect here, because the topic is delivered unchanged. Subscribe at / \
             with format=atom or format=json.",
        )),
        Some(word) => {
            Err(Rejection::bad_request(format!("sanitize must be true or false, not {word}.")))
        }
    }
}

/// Returns what a request says about following the page at its topic. A topic is exact by default.
pub(super) fn follow(form: &Form) -> Result<Follow, Rejection> {
    discovered_feeds::follow(form, false, Rejection::bad_request)
}

/// Rejects a filter, because there are no entries to choose from.
pub(crate) fn reject_filter(form: &Form) -> Result<(), Rejection> {
    match form.get("filter") {
        Some(_) => Err(Rejection::bad_request(
            "filter has no effect here, because there are no entries to choose from. Subscribe at / \
             with format=atom or format=json.",
        )),
        None => Ok(()),
    }
}

/// Rejects credentials for the callback, which an account must vouch for.
pub(crate) fn reject_callback_credentials(form: &Form) -> Result<(), Rejection> {
    match PARAMETERS.into_iter().find(|name| form.get(name).is_some()) {
        Some(name) => {
            let reason = format!("{name} has no effect here. Subscribe at / with an account.");
            Err(Rejection::bad_request(reason))
        }
        None => Ok(()),
    }
}

/// Returns an address that is required, without a fragment: a hub distributes whole topics.
fn whole_address<'a>(form: &'a Form, name: &str) -> Result<&'a str, Rejection> {
    match form.pairs().find(|(key, value)| *key == name && !value.is_empty()) {
        Some((_, value)) if value.contains('#') => {
            Err(Rejection::bad_request(format!("{name} must not have a fragment.")))
        }
        Some((_, value)) => Ok(value),
        None => {
            let suggestion = params::suggest_prefix(form, name);
            Err(Rejection::bad_request(format!("{name} is missing.{suggestion}")))
        }
    }
}

fn lease(form: &Form) -> Result<Option<u64>, Rejection> {
    let Some(text) = form.get("hub.lease_seconds") else { return Ok(None) };
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    match is_number {
        // A number too large for the type is longer than any lease granted.
        true => Ok(Some(text.parse().unwrap_or(u64::MAX))),
        false => Err(Rejection::bad_request(format!(
            "hub.lease_seconds must be a number of seconds, not {text}."
        ))),
    }
}

/// Returns the first known kind in `hub.verify`, which lists them in order of preference
/// (PubSubHubbub 0.3, section 6.1).
pub(super) fn verification(form: &Form) -> Result<Verification, Rejection> {
    let mut wanted = form.all("hub.verify").flat_map(|kinds| kinds.split(','));
    match wanted.find(|kind| matches!(kind.trim(), "sync" | "async")) {
        Some(kind) if kind.trim() == "sync" => Ok(Verification::Sync),
        None if form.has("hub.verify") => {
            Err(Rejection::bad_request("hub.verify must be sync or async."))
        }
        Some(_) | None => Ok(Verification::Async),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rejection_of(form: &str) -> String {
        let form = Form::from_urlencoded(form.as_bytes()).unwrap();
        let checked = intent(&form, IntentMode::Subscribe).and_then(|_| verification(&form));
        let checked = checked.and_then(|_| follow(&form));
        checked.err().map_or_else(String::new, |rejection| rejection.reason().to_owned())
    }

    #[test]
    fn a_request_that_cannot_be_carried_out_is_rejected_with_the_reason() {
        let good = "hub.topic=http://a.test/feed&hub.callback=http://b.test/cb";
        let long = format!("{good}&hub.secret={}", "x".repeat(200));
        #[rustfmt::skip]
        let cases = [
            (good.to_owned(),                                   ""),
            (format!("{good}&hub.verify=async&unknown=1"),      ""),
            (format!("{good}&hub.lease_seconds="),              ""),
            ("hub.callback=http://b.test/".to_owned(),          "hub.topic is missing."),
            ("hub.topic=http://a.test/".to_owned(),             "hub.callback is missing."),
            (format!("{good}%23x"),                             "hub.callback must not have a fragment."),
            (good.replace("http://b", "ftp://b"),               "hub.callback cannot be used: ftp: URLs are not supported, only http: and https:."),
            (long,                                              "hub.secret must be shorter than 200 bytes."),
            (format!("{good}&hub.lease_seconds=soon"),          "hub.lease_seconds must be a number of seconds, not soon."),
            (good.replace("feed", "%00"),                       "hub.topic cannot be used: the character U+0000 is not allowed."),
            (format!("{good}%00"),                              "hub.callback cannot be used: the character U+0000 is not allowed."),
            (format!("{good}&hub.secret=whsec_a%20b"),          "hub.secret must continue in base64 after whsec_, or not begin with it."),
            (format!("{good}&hub.secret=a%00b"),                "hub.secret must not contain the character U+0000."),
            (format!("{good}&hub.verify_token=%00"),            "hub.verify_token cannot be used: the character U+0000 is not allowed."),
            (format!("{good}&sanitize=false"),                  ""),
            (format!("{good}&sanitize=true"),                   "sanitize has no effect here, because the topic is delivered unchanged. Subscribe at / with format=atom or format=json."),
            (format!("{good}&callback_headers="),               ""),
            (format!("{good}&callback_authorization=Bearer+a"), "callback_authorization has no effect here. Subscribe at / with an account."),
            (format!("{good}&filter="),                         ""),
            (format!("{good}&filter=a"),                        "filter has no effect here, because there are no entries to choose from. Subscribe at / with format=atom or format=json."),
            (format!("{good}&sanitize=maybe"),                  "sanitize must be true or false, not maybe."),
            (format!("{good}&follow=true"),                     ""),
            (format!("{good}&signature=SHA512"),                ""),
            (format!("{good}&signature=md5"),                   "signature must be one of sha1, sha256, sha384, sha512, not md5."),
            (format!("{good}&follow=maybe"),                    "follow must be true or false, not maybe."),
            (format!("{good}&hub.verify=meep"),                 "hub.verify must be sync or async."),
        ];
        for (form, want) in cases {
            assert_eq!(rejection_of(&form), want, "{form}");
        }
    }
}
