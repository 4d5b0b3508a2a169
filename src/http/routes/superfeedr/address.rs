//! The address of a document of entries, by which a client can retrieve it again. It never contains
//! credentials. A client that sends them as a parameter cannot use such an address: a reader that moves
//! to it would be answered with 401 from then on. Its documents have none.

use http::Method;
use url::form_urlencoded::Serializer;

use crate::http::kit::callback_credentials::PARAMETERS;
use crate::http::kit::request::Request;
use crate::http::state::Gateway;
use feedgate_core::own_archive::ArchiveAddress;
use feedgate_core::resource::{Resource, ResourceKind};
use feedgate_protocol::form::Form;

/// The parameters that select what is retrieved, and in which format.
const SELECTING: [&str; 5] = ["hub.topic", "count", "before", "after", "format"];

/// Returns the address of the document that `request` retrieves: that of the request, as it was
/// received, or for parameters in a body, the same in a query. It is empty if the parameters contain
/// credentials.
pub(super) fn of_document(gateway: &Gateway, request: &Request, form: &Form) -> String {
    if has_credentials(form) {
        return String::new();
    }
    let is_in_query = matches!(request.method, Method::GET | Method::HEAD)
        && request.body.is_empty()
        && !request.query.is_empty();
    if is_in_query {
        let path = request.path.trim_start_matches('/');
        return gateway.public_url(&format!("{path}?{}", request.query));
    }
    let is_selecting = |name: &str| SELECTING.contains(&name) || is_callback_search(form, name);
    let selecting = form.pairs().filter(|(name, _)| is_selecting(name));
    let mut query = Serializer::new(String::new());
    query.append_pair("hub.mode", "retrieve").extend_pairs(selecting);
    gateway.public_url(&format!("?{}", query.finish()))
}

/// Returns whether the parameters contain credentials, which are not passed on in documents.
pub(super) fn has_credentials(form: &Form) -> bool {
    form.has("authorization") || PARAMETERS.iter().any(|name| form.has(name))
}

/// Returns whether a request names `resource` by the address of a feed of this gateway, which has an id of
/// its own.
pub(super) fn is_of_own_feed(gateway: &Gateway, form: &Form, resource: &Resource) -> bool {
    let named = form.get("hub.topic").unwrap_or_default();
    let is_own = resource.kind == ResourceKind::Collection || named != resource.topic.as_str();
    is_own && ArchiveAddress::parse(&gateway.settings.public_url, named).is_some()
}

/// Returns whether a parameter selects feeds by their callback. In a subscription to a topic, the
/// callback selects nothing.
fn is_callback_search(form: &Form, name: &str) -> bool {
    !form.has("hub.topic") && name.starts_with("hub.callback")
}
