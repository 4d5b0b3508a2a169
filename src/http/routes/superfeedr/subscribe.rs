//! Subscribing, unsubscribing and replaying by Superfeedr's API (rows S-1 to U-6 and
//! P-1).

use http::StatusCode;

use super::account::{Answer, broken, unprocessable};
use super::{forbidden, heard, retrieve};
use crate::http::Gateway;
use crate::http::kit::exchange::{Asked, empty};
use crate::http::kit::params::Refused;
use crate::http::routes::discovered_feeds;
use crate::jobs::runner;
use crate::net::{FetchError, Purpose};
use crate::subscriptions::{Done, NotVerified, Refusal, Verification};
use feedgate_core::account::Access;
use feedgate_core::intent::{Intent, IntentMode};
use feedgate_core::ports::SubscriptionFilter;
use feedgate_core::record::Seq;
use feedgate_core::resource::ResourceKind;
use feedgate_core::subscription::{Format, Lease, Secret, Statuses, SubscriptionRequest, Updates};
use feedgate_core::topic::{Callback, Topic};
use feedgate_protocol::Protocol;
use feedgate_protocol::form::Form;

/// "Please note that the callback URL cannot be longer than 250 chars" (Superfeedr's
/// API, row S-6).
const LONGEST_CALLBACK_CHARS: usize = 250;
const BAD_TOPIC: &str = "Please provide a valid hub.topic (feed) URL that is accepted on this \
    hub. You did not provide a valid hub.topic.";
const BAD_CALLBACK: &str = "Please provide a valid hub.callback URL.";
/// The most entries replayed (row P-1).
const MOST_REPLAYED: i64 = 50;

/// Begins or ends a subscription of the account's.
pub(super) async fn carry_out(
    gateway: &Gateway,
    asked: &Asked,
    form: &Form,
    access: &Access,
    mode: IntentMode,
) -> Result<Answer, Refused> {
    let intent = heard(form, mode, "superfeedr")
        .tell(gateway, intent(gateway, asked, form, (access, mode)).await)?;
    let verification = heard(form, mode, "superfeedr").tell(gateway, verification(form))?;
    let done = gateway.subscribe.carry_out(&intent, verification, runner::now()).await;
    match done.map_err(refused)? {
        Done::Later => Ok(Answer::Done(StatusCode::ACCEPTED)),
        Done::Now if mode == IntentMode::Unsubscribe => Ok(Answer::Done(StatusCode::NO_CONTENT)),
        Done::Now => {
            let found = gateway.subscribe.offers(&intent.wish.topic, form.is_set("discover"));
            let offers = found.await.map_err(|err| broken(&err))?;
            let mut response = match form.is_set("retrieve") {
                true => match retrieve::retrieve(gateway, asked, form, access).await? {
                    Answer::Reply(response) => response,
                    other => return Ok(other),
                },
                false => empty(StatusCode::NO_CONTENT),
            };
            discovered_feeds::announce(&mut response, &offers);
            Ok(Answer::Reply(response))
        }
    }
}

/// What is asked for.
async fn intent(
    gateway: &Gateway,
    asked: &Asked,
    form: &Form,
    (access, mode): (&Access, IntentMode),
) -> Result<Intent, Refused> {
    let topic = topic(form)?;
    let callback = match callback(form)? {
        Some(callback) => callback,
        None if mode == IntentMode::Unsubscribe => {
            let only = gateway.subscribe.only_callback(access.account, &topic).await;
            only.map_err(refused)?
        }
        None => return Err(unprocessable(BAD_CALLBACK)),
    };
    let format = format(asked, form)?.unwrap_or(Format::Fitting);
    let wish = SubscriptionRequest {
        account: Some(access.account),
        topic,
        callback,
        protocol: Protocol::WebSub,
        format,
        updates: updates(form)?,
        statuses: statuses(form, format)?,
        secret: secret(form)?,
        lease: Lease::ACCOUNT,
    };
    let verify_token = form.get_verbatim("hub.verify_token").map(str::to_owned);
    Ok(Intent { mode, wish, verify_token, backfill: form.is_set("backfill") })
}

/// Sends the last entries once more.
pub(super) async fn replay(
    gateway: &Gateway,
    form: &Form,
    access: &Access,
) -> Result<Answer, Refused> {
    let topic = topic(form)?;
    let callback = callback(form)?
        .ok_or_else(|| unprocessable("Please provide the hub.callback to be notified."))?;
    let count = i64::try_from(retrieve::count(form)?).unwrap_or(MOST_REPLAYED);
    let filter = SubscriptionFilter {
        account: Some(access.account),
        topic: Some(topic.as_str().to_owned()),
        callback: Some(callback.as_str().to_owned()),
        limit: 1,
        ..SubscriptionFilter::default()
    };
    let (listed, _) = gateway.store.list(&filter).await.map_err(|err| broken(&err))?;
    let Some(listed) = listed.into_iter().next() else {
        let why = "There is no subscription to this topic with this callback.";
        return Err(Refused::new(StatusCode::NOT_FOUND, why));
    };
    let owed = match listed.subscription.format {
        Format::Raw => listed.resource.body_version,
        Format::Atom | Format::Json | Format::Fitting => listed.resource.head.0,
    };
    // The body of a resource is kept in its newest version only.
    let is_body = match listed.subscription.format {
        Format::Raw => true,
        Format::Fitting => listed.resource.kind == ResourceKind::Other,
        Format::Atom | Format::Json => false,
    };
    let most = if is_body { 1 } else { MOST_REPLAYED };
    let cursor = Seq((owed - count.clamp(1, most)).max(0));
    let replayed = gateway.store.replay(listed.subscription.id, cursor, runner::now()).await;
    replayed.map_err(|err| broken(&err))?;
    Ok(Answer::Done(StatusCode::NO_CONTENT))
}

/// `hub.topic`, which must be there.
pub(super) fn topic(form: &Form) -> Result<Topic, Refused> {
    let given = form.get("hub.topic").ok_or_else(|| unprocessable(BAD_TOPIC))?;
    Topic::parse(given).map_err(|why| unprocessable(format!("{BAD_TOPIC} ({why})")))
}

/// `hub.callback`, if it is there.
fn callback(form: &Form) -> Result<Option<Callback>, Refused> {
    let Some(given) = form.get("hub.callback") else { return Ok(None) };
    if given.chars().count() > LONGEST_CALLBACK_CHARS {
        let why = format!(
            "Please provide a hub.callback URL of at most {LONGEST_CALLBACK_CHARS} characters."
        );
        return Err(unprocessable(why));
    }
    let parsed =
        Callback::parse(given).map_err(|why| unprocessable(format!("{BAD_CALLBACK} ({why})")));
    parsed.map(Some)
}

fn secret(form: &Form) -> Result<Option<Secret>, Refused> {
    let given = form.get_verbatim("hub.secret").filter(|secret| !secret.is_empty());
    let secret = given.map(|key| {
        Secret::new(key.to_owned()).ok_or_else(|| {
            let longest = Secret::TOO_LONG_BYTES;
            unprocessable(format!("Please provide a hub.secret shorter than {longest} bytes."))
        })
    });
    secret.transpose()
}

/// What is asked for by `format`, which wins, or by `Accept` (row S-7).
pub(super) fn format(asked: &Asked, form: &Form) -> Result<Option<Format>, Refused> {
    let named = form.get("format").map(|word| {
        let sentence = || format!("format must be atom, json or raw, not {word}.");
        let format = Format::from_word(word).filter(|format| *format != Format::Fitting);
        format.ok_or_else(|| unprocessable(sentence()))
    });
    Ok(named.transpose()?.or_else(|| {
        let accept = asked.header("accept").to_ascii_lowercase();
        match (accept.contains("application/json"), accept.contains("application/atom+xml")) {
            (true, false) => Some(Format::Json),
            (false, true) => Some(Format::Atom),
            _ => None,
        }
    }))
}

/// `updates=true` or `false`; without it as Superfeedr does it (rule N7).
fn updates(form: &Form) -> Result<Updates, Refused> {
    match form.get("updates").map(str::to_ascii_lowercase).as_deref() {
        None | Some("") => Ok(Updates::Fresh),
        Some("true" | "1") => Ok(Updates::Always),
        Some("false" | "0") => Ok(Updates::Never),
        Some(word) => Err(unprocessable(format!("updates must be true or false, not {word}."))),
    }
}

/// `status=transitions`, `always` or `never`: which changes of the status are told by
/// themselves (rule P33).
fn statuses(form: &Form, format: Format) -> Result<Statuses, Refused> {
    let asked = match form.get("status").filter(|word| !word.is_empty()) {
        Some(word) => Statuses::from_word(word).ok_or_else(|| {
            unprocessable(format!("status must be transitions, always or never, not {word}."))
        })?,
        None => Statuses::default(),
    };
    // A topic as it is has no place for a status.
    Ok(if format == Format::Raw { Statuses::Never } else { asked })
}

/// The first kind that is one; several may be listed.
fn verification(form: &Form) -> Result<Verification, Refused> {
    let mut wanted = form.all("hub.verify").flat_map(|kinds| kinds.split(',')).map(str::trim);
    match wanted.find(|kind| matches!(*kind, "sync" | "async")) {
        Some("sync") => Ok(Verification::Sync),
        Some(_) => Ok(Verification::Async),
        None => match form.get("hub.verify") {
            Some(word) => {
                Err(unprocessable(format!("hub.verify must be sync or async, not {word}.")))
            }
            None => Ok(Verification::None),
        },
    }
}

fn refused(refusal: Refusal) -> Refused {
    match refusal {
        Refusal::Forbidden(purpose, why) => {
            let why = forbidden(purpose, &why);
            unprocessable(match purpose {
                Purpose::Topic => format!("{BAD_TOPIC} ({why})"),
                Purpose::Callback => format!("{BAD_CALLBACK} ({why})"),
            })
        }
        Refusal::BadPart(why) => {
            unprocessable(format!("{BAD_TOPIC} (The part behind # cannot be watched: {why})"))
        }
        Refusal::NotVerified(NotVerified::Unreachable(why)) => {
            let why = match why {
                FetchError::Unreachable { host, detail, .. } => format!("{host}: {detail}"),
                other => other.to_string(),
            };
            unprocessable(format!("Your callback URL could not be reached: {why}."))
        }
        Refusal::NotVerified(why) => unprocessable(format!(
            "Your callback URL didn't echo the challenge. Please make sure it does. ({why})"
        )),
        Refusal::Superseded => unprocessable(format!("Not done: {refusal}.")),
        Refusal::NoSubscription => unprocessable("You are not subscribed to this topic."),
        Refusal::Several(many) => unprocessable(format!(
            "You have {many} subscriptions to this topic. Please name the hub.callback."
        )),
        Refusal::Unreadable(_) | Refusal::NoHandler | Refusal::Store(_) => broken(&refusal),
    }
}
