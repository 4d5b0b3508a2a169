//! Registrations of rssCloud, however they arrive: the checks and the sentences are the same for
//! REST, XML-RPC and SOAP.
//!
//! The sentences are those of the deployed servers to the letter, because clients show and
//! compare them.

use crate::http::kit::anonymous_access::Permission;
use crate::http::kit::permissions;
use crate::http::kit::rejection::Rejection;
use crate::http::kit::request::Request;
use crate::http::state::Gateway;
use crate::subscriptions::registration::NotificationHandler;
use crate::subscriptions::{CallerNetworks, NotVerified, SubscriptionRefusal};
use feedgate_core::topic::Topic;
use feedgate_protocol::Protocol;
use feedgate_protocol::form::Form;
use feedgate_protocol::xml::is_name;
use url::Url;

/// The most resources of one registration (rule S26).
const MAX_URLS: usize = 100;

/// The longest name of a procedure, which is sent to a handler before that has agreed to anything.
const MAX_PROCEDURE_BYTES: usize = 128;

/// The reply to a registration that succeeded.
pub(crate) const REGISTERED: &str = "Thanks for the registration. It worked. When the resource \
    updates we'll notify you. Don't forget to re-register after 24 hours, your subscription will \
    expire in 25. Keep on truckin!";

/// The fields of a registration, before they are checked.
pub(crate) struct HandlerFields {
    pub(crate) procedure: String,
    pub(crate) port: String,
    pub(crate) path: String,
    pub(crate) protocol: String,
    pub(crate) domain: Option<String>,
}

/// Returns the handler of a registration for `urls`, if the caller may register it. `form` may have
/// the credentials of an account.
pub(crate) async fn admit_handler(
    gateway: &Gateway,
    request: &Request,
    form: &Form,
    (fields, urls): (HandlerFields, &[String]),
) -> Result<NotificationHandler, Rejection> {
    let mut handler = parse_handler(fields, urls, request)?;
    permissions::check(gateway, request, form, Permission::RssCloud).await?;
    let named: Vec<_> = urls.iter().filter_map(|url| Topic::parse(url).ok()).collect();
    permissions::check_topics(gateway, request, form, &named).await?;
    gateway.anonymous_rate_limit.admit(request, urls.len())?;
    let callback = handler.callback();
    // A caller may have its own address called as often as it likes.
    if let Some(callback) = callback.as_ref().filter(|_| handler.domain.is_some()) {
        admit_verifications(gateway, request, urls, callback.as_str())?;
    }
    let topics = urls.iter().filter_map(|url| Url::parse(url).ok());
    let urls: Vec<_> = topics.chain(callback.map(|callback| callback.url().clone())).collect();
    handler.networks = permissions::caller_networks(gateway, request, form, &urls).await?;
    Ok(handler)
}

/// Counts the verifications of a handler for each of `urls` that a client causes.
pub(crate) fn admit_verifications(
    gateway: &Gateway,
    request: &Request,
    urls: &[String],
    handler: &str,
) -> Result<(), Rejection> {
    if request.is_local() {
        return Ok(());
    }
    let limit = &gateway.verification_rate_limit;
    urls.iter().try_for_each(|url| {
        // Other spellings of a URL are the same subscription.
        let topic = Topic::parse(url.as_str());
        let url = topic.as_ref().map_or(url.as_str(), Topic::as_str);
        limit.admit(request, (url, handler), false)
    })
}

/// Checks what can be checked without a request to anybody.
fn parse_handler(
    fields: HandlerFields,
    urls: &[String],
    request: &Request,
) -> Result<NotificationHandler, Rejection> {
    let procedure = fields.procedure;
    let (tls, protocol) = match fields.protocol.as_str() {
        "http-post" => (false, Protocol::HttpPost),
        "https-post" => (true, Protocol::HttpPost),
        "xml-rpc" => (false, Protocol::XmlRpc { procedure }),
        "soap" => (false, Protocol::Soap { procedure }),
        other => {
            return Err(Rejection::bad_request(format!(
                "Can't accept the subscription because the protocol, <i>{other}</i>, is \
                 unsupported."
            )));
        }
    };
    match &protocol {
        Protocol::XmlRpc { procedure } | Protocol::Soap { procedure } if procedure.is_empty() => {
            return Err(missing_parameters(&["notifyProcedure"]));
        }
        Protocol::XmlRpc { procedure } if procedure.contains('\0') => {
            return Err(Rejection::bad_request(
                "Can't accept the subscription because notifyProcedure contains the character \
                 U+0000.",
            ));
        }
        Protocol::XmlRpc { procedure } if !is_method_name(procedure) => {
            return Err(Rejection::bad_request(
                "Can't accept the subscription because notifyProcedure cannot be the name of an \
                 XML-RPC procedure.",
            ));
        }
        Protocol::Soap { procedure }
            if !is_name(procedure) || procedure.len() > MAX_PROCEDURE_BYTES =>
        {
            return Err(Rejection::bad_request(format!(
                "Can't accept the subscription because {procedure} cannot be the name of a SOAP \
                 procedure."
            )));
        }
        _ => {}
    }
    check_url_count(urls)?;
    let domain = fields.domain.filter(|domain| !domain.trim().is_empty());
    let (port, path) = (fields.port, fields.path);
    let (caller, networks) = (request.client.ip, CallerNetworks::Public);
    Ok(NotificationHandler { tls, protocol, domain, port, path, caller, networks })
}

/// Returns whether an XML-RPC procedure can have this name: "identifier characters, upper and
/// lower-case A-Z, the numeric characters, 0-9, underscore, dot, colon and slash" (XML-RPC), and the
/// hyphen, which some servers allow.
fn is_method_name(name: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "_.:/-".contains(c);
    name.len() <= MAX_PROCEDURE_BYTES && name.chars().all(is_allowed)
}

/// Rejects a request that names no resource, or too many.
pub(crate) fn check_url_count(urls: &[String]) -> Result<(), Rejection> {
    match urls.len() {
        0 => Err(Rejection::bad_request("No resources specified.")),
        1..=MAX_URLS => Ok(()),
        _ => Err(Rejection::bad_request(format!(
            "Can't accept more than {MAX_URLS} resources at once."
        ))),
    }
}

/// Returns the rejection of a request that lacks these parameters.
pub(crate) fn missing_parameters(names: &[&str]) -> Rejection {
    let names = names.join(", ");
    Rejection::bad_request(format!(
        "The following parameters were missing from the request body: {names}."
    ))
}

/// Returns the rejection, in the words of the protocol, of a `subscription`, a `ping` or a
/// `cancellation` that was refused.
pub(crate) fn reject_refusal(what: &str, refusal: &SubscriptionRefusal) -> Rejection {
    Rejection::bad_request(match refusal {
        SubscriptionRefusal::Store(_) => return Rejection::unavailable(refusal),
        SubscriptionRefusal::Busy(busy) => {
            let prefix = format!("The {what} was cancelled: ");
            return Rejection::busy(*busy).prefixed(&prefix);
        }
        SubscriptionRefusal::Unreadable(url) => format!(
            "The {what} was cancelled because there was an error reading the resource at URL {url}."
        ),
        SubscriptionRefusal::BadPart(reason) => format!(
            "The {what} was cancelled because the fragment of the URL cannot be used: {reason}."
        ),
        SubscriptionRefusal::NotVerified(NotVerified::RateLimited { retry_after }) => {
            return Rejection::callback_rate_limited(*retry_after);
        }
        SubscriptionRefusal::OwnCallback => {
            let reason = format!("The {what} was cancelled because {refusal}.");
            return Rejection::bad_request(reason).with_code(refusal.code());
        }
        SubscriptionRefusal::QuotaExceeded(reason) => {
            let reason = format!("The {what} was cancelled because {reason}.");
            return Rejection::bad_request(reason).with_code(refusal.code());
        }
        SubscriptionRefusal::NoSubscription => "There is no such subscription.".to_owned(),
        SubscriptionRefusal::NotVerified(_)
        | SubscriptionRefusal::NotValidated(_)
        | SubscriptionRefusal::Forbidden(..)
        | SubscriptionRefusal::NoHandler
        | SubscriptionRefusal::OwnDocument(_)
        | SubscriptionRefusal::BadTrack(_)
        | SubscriptionRefusal::BadFilter(_)
        | SubscriptionRefusal::NotFollowed(_)
        | SubscriptionRefusal::FeedHeaders
        | SubscriptionRefusal::Superseded
        | SubscriptionRefusal::Several(_) => {
            format!("The {what} was cancelled because the call failed when we tested the handler.")
        }
    })
}
