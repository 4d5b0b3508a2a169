//! Subscribing with the forms of the console: the fields that say where notifications are sent and
//! how, and the subscription that they describe.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use maud::{Markup, html};

use super::visit::Visit;
use crate::http::kit::auth;
use crate::http::kit::callback_credentials::{callback_credentials, feed_credentials};
use crate::http::kit::html::parts::copyable;
use crate::http::kit::params;
use crate::http::kit::rejection::Rejection;
use crate::http::routes::websub::describe_forbidden;
use crate::http::state::Gateway;
use crate::jobs::runner;
use crate::net::Purpose;
use crate::subscriptions::{
    FirstFetchWait, Follow, RequestTerms, SubscriptionRefusal, Verification,
};
use feedgate_core::account::{AccountId, Scope};
use feedgate_core::callback_headers::CallbackHeaders;
use feedgate_core::intent::{Intent, IntentMode};
use feedgate_core::query::{EntryFilter, Query};
use feedgate_core::signing::{BadSecret, Secret, SigningRequest};
use feedgate_core::store::{ListedSubscription, SubscriptionFilter};
use feedgate_core::subscription::{Format, Lease, Statuses, SubscriptionRequest};
use feedgate_core::topic::{Callback, Topic};
use feedgate_protocol::Protocol;
use feedgate_protocol::form::Form;

/// The most subscriptions of an account to one topic with one callback: one of each protocol.
const PROTOCOLS: usize = 8;

/// The formats of notifications, with their names.
const FORMATS: [(Format, &str); 4] = [
    (Format::Fitting, "Atom for feeds, other documents unchanged"),
    (Format::Atom, "Atom"),
    (Format::Json, "JSON"),
    (Format::Raw, "the document unchanged"),
];

/// What the fields of a form say about a subscription, besides its topic.
#[derive(Debug)]
pub(super) struct NewSubscription {
    callback: Callback,
    format: Format,
    secret: Option<Secret>,
    /// Whether the secret was made here, and must be displayed.
    has_new_secret: bool,
    backfill: bool,
    follow: Follow,
    is_sanitized: bool,
    filter: Option<EntryFilter>,
    headers: Option<CallbackHeaders>,
    feed_headers: Option<CallbackHeaders>,
}

/// What came of a subscription request.
pub(super) enum SubscribeResult {
    /// The subscription is stored.
    Subscribed,
    /// The account has the subscription already.
    Existing(Box<ListedSubscription>),
    /// The request was refused, for the reason in this sentence.
    Refused(String),
}

impl NewSubscription {
    /// Reads the fields of a form. An error of the fields is a sentence for the form.
    pub(super) fn read(visit: &Visit) -> Result<Result<NewSubscription, String>, Rejection> {
        auth::require(visit.access()?, Scope::Subscribe)?;
        let callback = match visit.value("callback") {
            "" => null_device(visit),
            text => text.to_owned(),
        };
        let callback = match Callback::parse(callback) {
            Ok(callback) => callback,
            Err(why) => return Ok(Err(format!("The callback cannot be used: {why}."))),
        };
        let is_sanitized = visit.form.is_set("sanitize");
        let format = Format::from_word(visit.value("format")).unwrap_or(Format::Fitting);
        let filter = match visit.form.get("filter").map(EntryFilter::parse).transpose() {
            Ok(filter) => filter,
            Err(why) => return Ok(Err(format!("The filter cannot be used: {why}."))),
        };
        // The raw topic has no entries; one of an unknown kind becomes an entry, as at `/`.
        let needs_entries =
            is_sanitized.then_some("sanitized").or(filter.as_ref().map(|_| "filtered"));
        let format = match (format, needs_entries) {
            (Format::Raw, Some(option)) => {
                let reason = format!("Only Atom and JSON can be {option}: choose another format.");
                return Ok(Err(reason));
            }
            (Format::Fitting, Some(_)) => Format::Atom,
            (format, _) => format,
        };
        let given = visit.form.get_verbatim("secret").filter(|secret| !secret.is_empty());
        let has_new_secret = given.is_none() && !callback.is_null_device();
        let secret = match given.map(|secret| Secret::new(secret.to_owned())).transpose() {
            Ok(None) if has_new_secret => Some(random_secret()?),
            Ok(secret) => secret,
            Err(why) => return Ok(Err(describe_secret(why))),
        };
        let headers = match callback_credentials(&visit.form) {
            Ok(headers) => headers,
            Err(why) => return Ok(Err(format!("The headers cannot be used: {why}."))),
        };
        let feed_headers = match feed_credentials(&visit.form) {
            Ok(headers) => headers.filter(|headers| !headers.is_empty()),
            Err(why) => {
                return Ok(Err(format!("The headers for the feed cannot be used: {why}.")));
            }
        };
        let backfill = visit.form.is_set("backfill");
        let follow = Follow::new(Some(visit.form.is_set("follow")), false);
        Ok(Ok(NewSubscription {
            callback,
            format,
            secret,
            has_new_secret,
            backfill,
            follow,
            is_sanitized,
            filter,
            headers,
            feed_headers,
        }))
    }

    /// Returns where notifications are sent.
    pub(super) fn callback(&self) -> &Callback {
        &self.callback
    }

    /// Returns the secret if it was made here, so that the page displays it.
    pub(super) fn new_secret(&self) -> Option<&Secret> {
        self.secret.as_ref().filter(|_| self.has_new_secret)
    }

    /// Subscribes an account, unless it has this subscription already.
    pub(super) async fn subscribe(
        &self,
        gateway: &Gateway,
        account: AccountId,
        topic: &Topic,
        wait: FirstFetchWait,
    ) -> Result<SubscribeResult, Rejection> {
        let found = find(gateway, account, topic, Some(&self.callback)).await?;
        let same = found.into_iter().find(|held| held.subscription.protocol == Protocol::WebSub);
        if let Some(held) = same.filter(|_| self.feed_headers.is_none()) {
            return Ok(SubscribeResult::Existing(Box::new(held)));
        }
        let intent = self.intent(account, topic)?;
        let service = &gateway.subscribe;
        let terms = RequestTerms::of_account(Verification::None, wait);
        let (now, headers) = (runner::now(), self.feed_headers.clone());
        let done = async {
            let intent = service.with_feed_headers(intent, headers, now).await?;
            let (intent, _) = service.follow(intent, self.follow, terms.networks, now).await?;
            service.carry_out(&intent, terms, runner::now()).await
        };
        match done.await {
            Ok(_) => Ok(SubscribeResult::Subscribed),
            Err(SubscriptionRefusal::Store(err)) => Err(Rejection::unavailable(&err)),
            Err(refusal) => Ok(SubscribeResult::Refused(describe_refusal(&refusal))),
        }
    }

    fn intent(&self, account: AccountId, topic: &Topic) -> Result<Intent, Rejection> {
        let request = SubscriptionRequest {
            account: Some(account),
            format: self.format,
            // The raw topic has no place for a status.
            statuses: match self.format {
                Format::Raw => Statuses::Never,
                Format::Atom | Format::Json | Format::Fitting => Statuses::default(),
            },
            is_sanitized: self.is_sanitized,
            filter: self.filter.clone(),
            signing: SigningRequest { secret: self.secret.clone(), ..SigningRequest::default() },
            headers: self.headers.clone(),
            lease: Lease::ACCOUNT,
            ..SubscriptionRequest::new(topic.clone(), self.callback.clone(), Protocol::WebSub)
        };
        let parameters = [
            ("hub.mode", IntentMode::Subscribe.as_str()),
            ("hub.topic", topic.as_str()),
            ("hub.callback", self.callback.as_str()),
        ];
        let parameters = parameters.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let parameters = Form::from_pairs(parameters.into_iter()).unwrap_or_default();
        let parameters = params::for_publisher(&parameters)?;
        let intent = Intent::new(IntentMode::Subscribe, request);
        Ok(Intent { backfill: self.backfill, parameters, ..intent })
    }
}

/// Returns the subscriptions of an account to a topic, a few at most.
pub(super) async fn find(
    gateway: &Gateway,
    account: AccountId,
    topic: &Topic,
    callback: Option<&Callback>,
) -> Result<Vec<ListedSubscription>, Rejection> {
    let unavailable = |err| Rejection::unavailable(&err);
    let topic = gateway.subscribe.resolve(topic, Some(account), callback).await;
    let topic = topic.map_err(unavailable)?;
    let filter = SubscriptionFilter {
        account: Some(account),
        topic: Some(topic.as_str().to_owned()),
        callback: callback.map(|callback| callback.as_str().to_owned()),
        limit: PROTOCOLS,
        ..SubscriptionFilter::default()
    };
    let listed = gateway.store.list(&filter).await;
    listed.map(|(listed, _)| listed).map_err(unavailable)
}

/// Returns the callback of subscriptions without notifications: the feed is watched, and can be read
/// from its archive and on its page.
fn null_device(visit: &Visit) -> String {
    let mut url = visit.gateway.settings.public_url.clone();
    url.set_path("/dev/null");
    url.into()
}

/// Returns a new secret.
pub(super) fn random_secret() -> Result<Secret, Rejection> {
    let failed = |err: &dyn std::fmt::Display| {
        Rejection::unavailable(&std::io::Error::other(err.to_string()))
    };
    let mut random = [0; 32];
    getrandom::fill(&mut random).map_err(|err| failed(&err))?;
    let secret = Secret::new(format!("whsec_{}", STANDARD.encode(random)));
    secret.map_err(|_| failed(&"a random secret is not valid"))
}

fn describe_secret(why: BadSecret) -> String {
    match why {
        BadSecret::TooLong => {
            format!("The secret must be shorter than {} bytes.", Secret::TOO_LONG_BYTES)
        }
        BadSecret::ContainsNul => "The secret must not contain the character U+0000.".to_owned(),
        BadSecret::NotBase64 => {
            "The secret must continue in base64 after whsec_, or not begin with it.".to_owned()
        }
    }
}

/// Returns the reason why a request was refused, as a sentence.
pub(super) fn describe_refusal(refusal: &SubscriptionRefusal) -> String {
    match refusal {
        SubscriptionRefusal::Forbidden(purpose, why) => {
            let subject = match purpose {
                Purpose::Topic => "The address of the feed",
                Purpose::Callback => "The callback",
            };
            format!("{subject} cannot be used: {}.", describe_forbidden(*purpose, why))
        }
        SubscriptionRefusal::BadPart(why) => {
            format!("The fragment of the address cannot be used: {why}.")
        }
        SubscriptionRefusal::BadTrack(why) => {
            format!("The query of the track cannot be used: {why}.")
        }
        SubscriptionRefusal::BadFilter(why) => {
            format!("The filter in the address cannot be used: {why}.")
        }
        SubscriptionRefusal::NotFollowed(why) => {
            format!("The page cannot be followed: {why}.")
        }
        SubscriptionRefusal::Busy(busy) => {
            format!("feedgate is busy, please try again in {} s.", busy.retry_in.as_secs())
        }
        SubscriptionRefusal::NotVerified(why) => {
            format!("The callback did not confirm the request: {why}.")
        }
        refusal => format!("The subscription was not accepted: {refusal}."),
    }
}

/// Returns the field that says whether a page is followed, with this label; it is checked if `is_suggested`.
pub(super) fn follow_checkbox(visit: &Visit, label: &str, is_suggested: bool) -> Markup {
    let by_default = is_suggested || visit.gateway.settings.follows_pages;
    let is_checked = by_default || visit.form.is_set("follow");
    html! {
        label {
            input type="checkbox" name="follow" value="true" checked[is_checked];
            " " (label)
        }
    }
}

/// Returns the fields of a form that subscribes.
pub(super) fn fields(visit: &Visit) -> Markup {
    let format = Format::from_word(visit.value("format")).unwrap_or(Format::Json);
    html! {
        label for="callback" { "Callback " small { "(optional)" } }
        input id="callback" name="callback" type="url" maxlength=(Callback::LONGEST_BYTES)
            placeholder="https://example.com/webhook" value=(visit.value("callback"))
            aria-describedby="callback-note";
        small #callback-note {
            "Notifications are posted to this URL. Without one, the placeholder "
            code { "/dev/null" } " is stored: the feed is fetched and its entries are kept, and no \
            notification is sent."
        }
        label for="format" { "Format" }
        select id="format" name="format" {
            @for (held, name) in FORMATS {
                option value=(held.as_str()) selected[held == format] { (name) }
            }
        }
        label for="filter" { "Filter " small { "(optional)" } }
        input id="filter" name="filter" maxlength=(Query::MAX_BYTES) spellcheck="false"
            placeholder="laurel hardy -remake" value=(visit.value("filter"))
            aria-describedby="filter-note";
        small #filter-note {
            "Only entries that match this query are sent, such as "
            code { "\"new york\" -rain site:example.com" } " or " code { "texas | france" } "."
        }
        label for="secret" { "Secret " small { "(optional)" } }
        input id="secret" name="secret" autocomplete="off" spellcheck="false"
            aria-describedby="secret-note";
        small #secret-note {
            "Notifications are signed with it. If there is a callback and no secret, one is \
             generated and displayed once."
        }
    }
}

/// Returns the fields that few need, with `further` ones, behind one line.
pub(super) fn more_fields(visit: &Visit, further: Markup) -> Markup {
    let is_open = ["sanitize", "backfill"].iter().any(|name| visit.form.is_set(name));
    html! {
        details open[is_open] {
            summary { "More options" }
            label {
                input type="checkbox" name="sanitize" value="true"
                    checked[visit.form.is_set("sanitize")] aria-describedby="sanitize-note";
                " Sanitize the texts of entries"
            }
            small #sanitize-note {
                "Scripts, styles and everything else that could act in a page is removed. What is not a \
                 feed is sent as an entry."
            }
            (credentials_field("callback", "Authorization: Bearer 0123456789", "to the callback", ""))
            (further)
        }
    }
}

/// Returns the field for the headers that are sent with each request `to` a feed or a callback. The names in
/// the form begin with `whose`.
pub(super) fn credentials_field(whose: &str, placeholder: &str, to: &str, further: &str) -> Markup {
    let (name, note) = (format!("{whose}_headers"), format!("{whose}-headers-note"));
    html! {
        label for=(name) { "Headers for the " (whose) " " small { "(optional)" } }
        textarea id=(name) name=(name) rows="2" autocomplete="off" spellcheck="false"
            placeholder=(placeholder) aria-describedby=(note) {}
        small id=(note) {
            "Credentials that are sent with each request " (to) ", one header on each line. "
            (further) "They are stored like a secret and never displayed."
        }
    }
}

/// Returns the note that displays a secret that was made here.
pub(super) fn new_secret_note(secret: Option<&Secret>) -> Markup {
    html! {
        @if let Some(secret) = secret {
            div.card role="status" {
                p { "Notifications are signed with this secret, which is displayed only now:" }
                (copyable(secret.expose()))
            }
        }
    }
}
