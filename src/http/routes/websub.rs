//! The open WebSub hub: no account, so the callback's word is all there is.
//!
//! "Hubs MUST … respond to a subscription request with 202" and the answer does not
//! depend on verification (WebSub `#subscription-response-details`). Only clients of
//! PubSubHubbub 0.3, who ask for it with `hub.verify=sync`, wait for the outcome.

use http::StatusCode;
use warp::reply::Response;

use crate::http::Gateway;
use crate::http::kit::exchange::{Asked, empty};
use crate::http::kit::params::{self, Bodies, Refused};
use crate::http::routes::discovered_feeds;
use crate::http::routes::superfeedr::{account, forbidden, heard, publish};
use crate::jobs::runner;
use crate::net::Purpose;
use crate::subscriptions::{Done, Refusal, Verification};
use feedgate_core::intent::{Intent, IntentMode};
use feedgate_core::subscription::{Format, Lease, Secret, Statuses, SubscriptionRequest, Updates};
use feedgate_core::topic::{Callback, Topic};
use feedgate_protocol::Protocol;
use feedgate_protocol::form::Form;

/// Answers whatever is asked at `/hub`.
pub(crate) async fn answer(gateway: &Gateway, asked: &Asked) -> Response {
    match carry_out(gateway, asked).await {
        Ok(response) => response,
        Err(refused) => refused.reply(),
    }
}

async fn carry_out(gateway: &Gateway, asked: &Asked) -> Result<Response, Refused> {
    let form = params::read(asked, Bodies::Forms)?;
    let mode = match form.get("hub.mode") {
        Some("publish") => {
            return match publish::publish(gateway, asked, &form).await? {
                0 => Err(bad("hub.url is missing: it must name the topic that changed.")),
                _ => Ok(empty(StatusCode::NO_CONTENT)),
            };
        }
        Some(word) => IntentMode::from_word(word).ok_or_else(|| {
            bad(format!("hub.mode must be subscribe, unsubscribe or publish, not {word}."))
        })?,
        None => return Err(bad("hub.mode is missing: subscribe, unsubscribe or publish.")),
    };
    let read = intent(&form, mode).and_then(|intent| {
        let verification = verification(&form)?;
        gateway.strangers.admit(asked, 1)?;
        Ok((intent, verification))
    });
    let (intent, verification) = heard(&form, mode, "websub").tell(gateway, read)?;
    match gateway.subscribe.carry_out(&intent, verification, runner::now()).await {
        Ok(Done::Now) => {
            let mut response = empty(StatusCode::NO_CONTENT);
            let found = gateway.subscribe.offers(&intent.wish.topic, false).await;
            discovered_feeds::announce(&mut response, &found.map_err(|err| account::broken(&err))?);
            Ok(response)
        }
        Ok(Done::Later) => Ok(empty(StatusCode::ACCEPTED)),
        Err(Refusal::NotVerified(why)) => Err(Refused::new(
            StatusCode::CONFLICT,
            format!("The callback did not confirm the {}: {why}.", mode.as_str()),
        )),
        Err(refusal @ Refusal::Superseded) => {
            Err(Refused::new(StatusCode::CONFLICT, format!("Not done: {refusal}.")))
        }
        Err(Refusal::Forbidden(purpose, why)) => {
            let why = forbidden(purpose, &why);
            let name = match purpose {
                Purpose::Topic => "hub.topic",
                Purpose::Callback => "hub.callback",
            };
            Err(bad(format!("{name} cannot be used: {why}.")))
        }
        // What has a fragment did not get this far.
        Err(refusal) => Err(account::broken(&refusal)),
    }
}

fn intent(form: &Form, mode: IntentMode) -> Result<Intent, Refused> {
    let topic = whole(form, "hub.topic")?;
    let topic =
        Topic::parse(topic).map_err(|why| bad(format!("hub.topic cannot be used: {why}.")))?;
    let callback = whole(form, "hub.callback")?;
    let callback = Callback::parse(callback)
        .map_err(|why| bad(format!("hub.callback cannot be used: {why}.")))?;
    let secret = form.get_verbatim("hub.secret").filter(|secret| !secret.is_empty());
    let secret = secret.map(|key| {
        Secret::new(key.to_owned()).ok_or_else(|| {
            bad(format!("hub.secret must be shorter than {} bytes.", Secret::TOO_LONG_BYTES))
        })
    });
    let wish = SubscriptionRequest {
        account: None,
        topic,
        callback,
        protocol: Protocol::WebSub,
        format: Format::Raw,
        updates: Updates::default(), // the whole topic goes out, whatever changed in it
        statuses: Statuses::Never,   // nor has the topic a place for a status
        secret: secret.transpose()?,
        lease: Lease::websub(lease(form)?),
    };
    let verify_token = form.get_verbatim("hub.verify_token").map(str::to_owned);
    Ok(Intent { mode, wish, verify_token, backfill: form.is_set("backfill") })
}

/// An address that must be there, without a fragment: a hub distributes whole topics.
fn whole<'a>(form: &'a Form, name: &str) -> Result<&'a str, Refused> {
    match form.pairs().find(|(held, value)| *held == name && !value.is_empty()) {
        Some((_, value)) if value.contains('#') => {
            Err(bad(format!("{name} must not have a fragment.")))
        }
        Some((_, value)) => Ok(value),
        None => Err(bad(format!("{name} is missing."))),
    }
}

fn lease(form: &Form) -> Result<Option<u64>, Refused> {
    let Some(text) = form.get("hub.lease_seconds") else { return Ok(None) };
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    match is_number {
        // Longer than any number is still longer than what is granted.
        true => Ok(Some(text.parse().unwrap_or(u64::MAX))),
        false => Err(bad(format!("hub.lease_seconds must be a number of seconds, not {text}."))),
    }
}

/// The first kind of `hub.verify` that is one: they are listed in order of preference
/// (PubSubHubbub 0.3, section 6.1).
fn verification(form: &Form) -> Result<Verification, Refused> {
    let mut wanted = form.all("hub.verify").flat_map(|kinds| kinds.split(','));
    match wanted.find(|kind| matches!(kind.trim(), "sync" | "async")) {
        Some(kind) if kind.trim() == "sync" => Ok(Verification::Sync),
        None if form.has("hub.verify") => Err(bad("hub.verify must be sync or async.")),
        Some(_) | None => Ok(Verification::Async),
    }
}

fn bad(why: impl Into<String>) -> Refused {
    Refused::new(StatusCode::BAD_REQUEST, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(form: &str) -> String {
        let form = Form::from_urlencoded(form.as_bytes()).unwrap();
        let checked = intent(&form, IntentMode::Subscribe).and_then(|_| verification(&form));
        checked.err().map_or_else(String::new, |refused| refused.why)
    }

    #[test]
    fn a_request_that_cannot_be_carried_out_is_told_why() {
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
            (format!("{good}&hub.verify=meep"),                 "hub.verify must be sync or async."),
        ];
        for (form, want) in cases {
            assert_eq!(refused(&form), want, "{form}");
        }
    }
}
