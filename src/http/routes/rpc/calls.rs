//! The common part of the procedures of XML-RPC and SOAP: carrying out a registration or a
//! ping. The reason of a [`Rejection`] becomes the text of a fault.

use crate::http::kit::anonymous_access::Permission;
use crate::http::kit::params;
use crate::http::kit::permissions;
use crate::http::kit::rejected_request::RejectedRequest;
use crate::http::kit::rejection::Rejection;
use crate::http::kit::request::Request;
use crate::http::routes::rpc::descriptions::ProcedureDescription;
use crate::http::routes::rpc::procedure::Procedure;
use crate::http::routes::rsscloud::pings::{ping_and_wait, waits_for_delivery};
use crate::http::routes::rsscloud::registration::{HandlerFields, admit_handler, reject_refusal};
use crate::http::state::Gateway;
use crate::jobs::runner;
use crate::subscriptions::SubscriptionRefusal;
use feedgate_core::event::EventKind;
use feedgate_core::ping::{Ping, PingSource};
use url::Url;

/// Returns the fault of a call whose procedure is unknown.
pub(super) fn undefined(method: &str) -> Rejection {
    Rejection::bad_request(format!("Can't make the call because \"{method}\" is not defined."))
}

/// Returns the description of the procedure with this name.
pub(super) fn description(
    gateway: &Gateway,
    name: &str,
) -> Result<&'static ProcedureDescription, Rejection> {
    let found = Procedure::find(gateway, name.trim()).and_then(ProcedureDescription::find);
    found.ok_or_else(|| {
        Rejection::bad_request(format!("There is no description of \"{name}\": it is not defined."))
    })
}

/// Returns the fault of a call with too few parameters.
pub(super) fn too_few_params(procedure: &str) -> Rejection {
    Rejection::bad_request(format!(
        "Can't call \"{procedure}\" because there aren't enough parameters."
    ))
}

/// Returns the fault of a call with too many parameters.
pub(super) fn too_many_params(procedure: &str) -> Rejection {
    Rejection::bad_request(format!(
        "Can't call \"{procedure}\" because there are too many parameters."
    ))
}

/// Registers a handler for these resources.
pub(super) async fn register(
    gateway: &Gateway,
    request: &Request,
    fields: HandlerFields,
    urls: Vec<String>,
) -> Result<(), Rejection> {
    let urls = urls.iter().map(|url| url.trim().to_owned()).filter(|url| !url.is_empty());
    let urls: Vec<String> = urls.collect();
    let form = params::read_query(request);
    let read = admit_handler(gateway, request, &form, (fields, &urls)).await;
    let feed = urls.first().map_or("", String::as_str);
    let handler =
        RejectedRequest::rsscloud(EventKind::Subscribe, feed).record_if_rejected(gateway, read)?;
    let spacing = gateway.settings.ping_spacing;
    let done = gateway.subscribe.register(&handler, &urls, spacing, runner::now()).await;
    done.map_err(|refusal| reject_refusal("subscription", &refusal))?;
    gateway.recent_registrants.remember(request);
    Ok(())
}

/// Takes a ping of rssCloud, and waits until its feed has been fetched. Every well-formed ping is
/// taken, whatever it names.
pub(super) async fn cloud_ping(
    gateway: &Gateway,
    request: &Request,
    url: &str,
) -> Result<(), Rejection> {
    let admitted = permissions::check_by_query(gateway, request, Permission::Pings).await;
    let admitted = admitted.and_then(|()| gateway.anonymous_rate_limit.admit(request, 1));
    RejectedRequest::rsscloud(EventKind::Ping, url).record_if_rejected(gateway, admitted)?;
    let ping = Ping {
        at: runner::now(),
        source: PingSource::RssCloud,
        name: String::new(),
        url: url.trim().to_owned(),
        feed_url: None,
    };
    let query = params::read_query(request);
    if waits_for_delivery(gateway, &query) {
        let urls = Vec::from_iter(Url::parse(&ping.url));
        let networks = permissions::caller_networks(gateway, request, &query, &urls).await?;
        return match ping_and_wait(gateway, &ping, networks).await {
            Err(err @ SubscriptionRefusal::Store(_)) => Err(Rejection::unavailable(&err)),
            Ok(_) | Err(_) => Ok(()),
        };
    }
    let taken = gateway.subscribe.ping_and_fetch(&ping, gateway.settings.ping_spacing).await;
    taken.map_err(|err| Rejection::unavailable(&err))
}
