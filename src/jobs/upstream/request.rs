//! Sends a subscription request to an upstream, in its protocol.
//!
//! A hub accepts the request, and verifies it later (WebSub
//! `#subscriber-sends-subscription-request`). A cloud calls the callback before it responds, and its
//! response says whether the subscription succeeded (seed 000, "REST interface").

use std::time::Duration;

use bytes::Bytes;
use http::header::ACCEPT;
use http::{HeaderValue, Method, StatusCode};
use url::{Url, form_urlencoded};

use crate::net::{CallbackRequest, CallbackResponse, FetchError, HttpClient};
use crate::verification_limits::{VerificationLimits, VerificationPermit, VerificationTarget};
use feedgate_core::registrant::Requester;
use feedgate_core::signing::Secret;
use feedgate_core::subscription::Lease;
use feedgate_core::topic::{BadAddress, Callback};
use feedgate_core::upstream::{AdvertisedUpstream, Upstream};
use feedgate_protocol::Protocol;
use feedgate_protocol::rsscloud;
use feedgate_protocol::soap::{self, SoapParameter};
use feedgate_protocol::xml;
use feedgate_protocol::xmlrpc::{self, XmlRpcValue};

/// The maximum number of redirects of a hub: as many as of a topic (rule P18).
const MAX_REDIRECTS: usize = 5;
/// The shortest time after which a request is tried again that found no permit.
const AGAIN_IN: Duration = Duration::from_secs(10);
/// The shortest time after which a request is tried again at a host where requests have failed.
const AFTER_FAILURES: Duration = Duration::from_secs(600);
/// The procedure that a cloud calls, for protocols that name one.
const PROCEDURE: &str = "rssCloudNotify";
/// The procedure that registers at a cloud, if the feed does not name it.
const REGISTER: &str = "rssCloud.pleaseNotify";

/// The reason why a subscription at an upstream failed.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamError {
    /// The upstream did not respond.
    #[error("the upstream could not be reached")]
    Unreachable(#[source] FetchError),
    /// The response has an error status.
    #[error("the upstream responded with {0}")]
    Status(StatusCode),
    /// The upstream refused in its protocol.
    #[error("the upstream rejected the request: {0}")]
    Refused(String),
    /// Nothing was sent: as many requests to its host, or to one that it redirects to, have failed as are
    /// sent at the same time, or this gateway is busy. Holds the time after which it may be requested.
    #[error(
        "the upstream was not requested: too many requests to its host have failed, or this gateway is \
         busy; try again in {} s", .0.as_secs()
    )]
    Busy(Duration),
}

impl UpstreamError {
    /// Returns the stable code for logs and metrics, listed in `docs/errors.md`.
    pub fn code(&self) -> &'static str {
        match self {
            UpstreamError::Unreachable(err) => err.code(),
            UpstreamError::Status(_) => "upstream_status",
            UpstreamError::Refused(_) => "upstream_refused",
            UpstreamError::Busy(_) => "host_busy",
        }
    }

    /// Returns whether the upstream made the decision, so that a retry will not help soon.
    pub(super) fn is_final(&self) -> bool {
        match self {
            UpstreamError::Unreachable(FetchError::Forbidden { .. } | FetchError::BadUrl(_)) => {
                true
            }
            UpstreamError::Unreachable(_) | UpstreamError::Busy(_) => false,
            UpstreamError::Status(status) => {
                status.is_client_error() && *status != StatusCode::TOO_MANY_REQUESTS
            }
            UpstreamError::Refused(_) => true,
        }
    }
}

/// A requested subscription at a hub or a cloud.
#[derive(Clone, Copy, Debug)]
pub struct UpstreamRequest<'a> {
    /// The upstream, its protocol, and the topic.
    pub offer: &'a AdvertisedUpstream,
    /// The secret with which a hub signs.
    pub secret: &'a Secret,
    /// The address for notifications.
    pub own: &'a Url,
    /// Whether a cloud takes the host of the callback from the request's client address.
    pub is_at_caller: bool,
}

/// The limits of requests to hosts, and who is charged for a request.
pub(super) type Limits<'a> = (&'a VerificationLimits, Requester);

/// Sends the request that begins or renews (`subscribe`) or ends (`unsubscribe`, hubs only) a
/// subscription, with a callback address below `public_url`, within `limits`.
pub(super) async fn send(
    client: &HttpClient,
    upstream: &Upstream,
    mode: &str,
    public_url: &Url,
    limits: Limits<'_>,
) -> Result<(), UpstreamError> {
    let own = address(public_url, &upstream.token);
    let (offer, secret) = (&upstream.offer, &upstream.secret);
    let wanted = UpstreamRequest { offer, secret, own: &own, is_at_caller: false };
    request(client, &wanted, mode, Some(limits)).await
}

/// Sends the same request for any callback address, without limits.
pub async fn request_subscription(
    client: &HttpClient,
    wanted: &UpstreamRequest<'_>,
    mode: &str,
) -> Result<(), UpstreamError> {
    request(client, wanted, mode, None).await
}

async fn request(
    client: &HttpClient,
    wanted: &UpstreamRequest<'_>,
    mode: &str,
    limits: Option<Limits<'_>>,
) -> Result<(), UpstreamError> {
    let endpoint = Url::parse(&wanted.offer.endpoint)
        .map_err(|err| UpstreamError::Unreachable(FetchError::BadUrl(err.to_string())))?;
    let protocol = &wanted.offer.protocol;
    let mut headers = rsscloud::headers(protocol, &endpoint);
    let body = match protocol {
        Protocol::WebSub => websub(wanted, mode),
        Protocol::HttpPost => {
            headers.insert(ACCEPT, HeaderValue::from_static("application/xml, text/xml;q=0.9"));
            please_notify(wanted)
        }
        Protocol::XmlRpc { procedure } => by_xmlrpc(wanted, procedure),
        Protocol::Soap { procedure } => by_soap(wanted, procedure),
    };
    let call = CallbackRequest { method: Method::POST, url: endpoint, headers, body: body.into() };
    let reply = send_following(client, call, limits).await?;
    if !reply.status.is_success() {
        return Err(UpstreamError::Status(reply.status));
    }
    check_response(protocol, &reply)
}

/// Sends a request, and repeats it unchanged at the address to which a hub redirects with 307 or 308
/// (WebSub `#subscription-response-details`). Each address goes through the guard. A request that was
/// encrypted is not repeated in clear, because it contains the secret.
async fn send_following(
    client: &HttpClient,
    mut call: CallbackRequest,
    limits: Option<Limits<'_>>,
) -> Result<CallbackResponse, UpstreamError> {
    let mut redirects = 0;
    loop {
        let permit = permit(client, limits, &call.url).await?;
        let reply = match client.call_signed(call.clone()).await {
            Err(FetchError::GatewayBusy(busy)) => {
                permit.ends_unsent();
                return Err(UpstreamError::Busy(busy.retry_in));
            }
            reply => reply.map_err(UpstreamError::Unreachable)?,
        };
        let is_kept =
            matches!(reply.status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
        // A hub that has accepted before may refuse a topic.
        let is_refusal = permit.may_repeat() && reply.status.is_client_error();
        permit.ends(reply.status.is_success() || is_kept || is_refusal);
        let target = reply.redirect_target(&call.url).filter(|_| is_kept);
        let is_weaker = |target: &Url| call.url.scheme() == "https" && target.scheme() != "https";
        match target.filter(|target| redirects < MAX_REDIRECTS && !is_weaker(target)) {
            Some(target) => call.url = target,
            None => return Ok(reply),
        }
        redirects += 1;
    }
}

/// Returns a permit for a request to `url`: a feed may name any host as its hub, and a hub may redirect
/// to any.
async fn permit(
    client: &HttpClient,
    limits: Option<Limits<'_>>,
    url: &Url,
) -> Result<VerificationPermit, UpstreamError> {
    let Some((limits, requester)) = limits else { return Ok(VerificationPermit::free()) };
    let bad_url = |err: BadAddress| UpstreamError::Unreachable(FetchError::BadUrl(err.to_string()));
    let callback = Callback::parse(url.as_str()).map_err(bad_url)?;
    match VerificationTarget::resolve(client, &callback, requester).await {
        Some(target) => limits.try_visit(&target).ok_or_else(|| {
            // After failures, all topics of the hub would otherwise come back every minute.
            let after_failures = limits.retry_after(&target).map(|wait| wait.max(AFTER_FAILURES));
            UpstreamError::Busy(after_failures.unwrap_or(AGAIN_IN))
        }),
        None => Ok(VerificationPermit::free()),
    }
}

/// Returns the address for notifications of this upstream.
fn address(public_url: &Url, token: &str) -> Url {
    let mut own = public_url.clone();
    if let Ok(mut path) = own.path_segments_mut() {
        path.pop_if_empty().extend(["upstream", token]);
    }
    own
}

fn websub(wanted: &UpstreamRequest<'_>, mode: &str) -> String {
    let lease = Lease::WEBSUB.as_secs().to_string();
    form_urlencoded::Serializer::new(String::new())
        .append_pair("hub.mode", mode)
        .append_pair("hub.topic", &wanted.offer.topic)
        .append_pair("hub.callback", wanted.own.as_str())
        .append_pair("hub.secret", wanted.secret.expose())
        .append_pair("hub.lease_seconds", &lease)
        .append_pair("hub.verify", "async") // which hubs of PubSubHubbub 0.3 insist on
        .finish()
}

/// The parts of the callback address, in the form of rssCloud: port, path, protocol, and the domain
/// unless it is the caller's.
struct Parts {
    port: String,
    path: String,
    protocol: &'static str,
    domain: Option<String>,
}

impl UpstreamRequest<'_> {
    fn parts(&self) -> Parts {
        let protocol = match self.offer.protocol.as_str() {
            "http-post" if self.own.scheme() == "https" => "https-post",
            other => other,
        };
        let domain = self.own.host_str().filter(|_| !self.is_at_caller);
        Parts {
            port: self.own.port_or_known_default().unwrap_or(80).to_string(),
            path: self.own.path().to_owned(),
            protocol,
            domain: domain.map(str::to_owned),
        }
    }
}

fn please_notify(wanted: &UpstreamRequest<'_>) -> String {
    let parts = wanted.parts();
    form_urlencoded::Serializer::new(String::new())
        .append_pair("notifyProcedure", "")
        .append_pair("port", &parts.port)
        .append_pair("path", &parts.path)
        .append_pair("protocol", parts.protocol)
        .extend_pairs(parts.domain.map(|domain| ("domain", domain)))
        .append_pair("url1", &wanted.offer.topic)
        .finish()
}

fn by_xmlrpc(wanted: &UpstreamRequest<'_>, procedure: &str) -> String {
    let Parts { port, path, protocol, domain } = wanted.parts();
    let port = port.parse().map_or(XmlRpcValue::Text(port), XmlRpcValue::Int);
    let procedure = if procedure.is_empty() { REGISTER } else { procedure };
    let mut params = vec![
        XmlRpcValue::Text(PROCEDURE.to_owned()),
        port,
        XmlRpcValue::Text(path),
        XmlRpcValue::Text(protocol.to_owned()),
        XmlRpcValue::Array(vec![XmlRpcValue::Text(wanted.offer.topic.clone())]),
    ];
    params.extend(domain.map(XmlRpcValue::Text));
    xmlrpc::call_with(procedure, &params)
}

fn by_soap(wanted: &UpstreamRequest<'_>, procedure: &str) -> String {
    let Parts { port, path, protocol, domain } = wanted.parts();
    let procedure = if xml::is_name(procedure) { procedure } else { "pleaseNotify" };
    let mut params = vec![
        ("notifyProcedure", SoapParameter::Text(PROCEDURE.to_owned())),
        ("port", SoapParameter::Text(port)),
        ("path", SoapParameter::Text(path)),
        ("protocol", SoapParameter::Text(protocol.to_owned())),
        ("urlList", SoapParameter::List(vec![wanted.offer.topic.clone()])),
    ];
    params.extend(domain.map(|domain| ("domain", SoapParameter::Text(domain))));
    soap::call_with(procedure, &params)
}

/// Checks a response with a success status. Hubs refuse with the status code alone; clouds send
/// `success="false"`, a fault or a false with status 200.
pub fn check_response(protocol: &Protocol, reply: &CallbackResponse) -> Result<(), UpstreamError> {
    let refused = |why: String| Err(UpstreamError::Refused(why.chars().take(200).collect()));
    match protocol {
        Protocol::WebSub => Ok(()),
        Protocol::HttpPost => match notify_result(&reply.body) {
            Some((true, _)) | None => Ok(()),
            Some((false, why)) => refused(why),
        },
        Protocol::XmlRpc { .. } => match xmlrpc::read_response(&reply.body) {
            Ok(Ok(XmlRpcValue::Boolean(false))) => refused("false".to_owned()),
            Ok(Ok(_)) => Ok(()),
            Ok(Err(fault)) => refused(fault.message),
            Err(bad) => refused(bad.to_string()),
        },
        Protocol::Soap { .. } => match soap::read_response(&reply.body) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(why)) => refused(why),
            Err(bad) => refused(bad.to_string()),
        },
    }
}

/// Reads `<notifyResult success="true" msg="…"/>`, or the same in JSON. Returns `None` if the body
/// is neither: old clouds respond with a page.
fn notify_result(body: &Bytes) -> Option<(bool, String)> {
    if let Ok(root) = xml::read(body) {
        let success = root.attribute("success")?.eq_ignore_ascii_case("true");
        return Some((success, root.attribute("msg").unwrap_or_default().to_owned()));
    }
    let json: serde_json::Value = serde_json::from_slice(body).ok()?;
    let success = json.get("success")?.as_bool()?;
    let why = json.get("msg").and_then(serde_json::Value::as_str).unwrap_or_default();
    Some((success, why.to_owned()))
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::*;

    fn reply(body: &str) -> CallbackResponse {
        CallbackResponse {
            status: StatusCode::OK,
            headers: HeaderMap::new(),
            body: Bytes::copy_from_slice(body.as_bytes()),
            is_public: true,
        }
    }

    #[test]
    fn clouds_say_no_with_a_status_that_says_yes() {
        let rest = Protocol::HttpPost;
        let rpc = Protocol::XmlRpc { procedure: String::new() };
        let soap = Protocol::Soap { procedure: String::new() };
        let value = |value| xmlrpc::response(&XmlRpcValue::Boolean(value));
        #[rustfmt::skip]
        let cases = [
            (&Protocol::WebSub, String::new(),                                                 None),
            (&rest, "<notifyResult success=\"true\" msg=\"Thanks.\"/>".to_owned(),             None),
            (&rest, "<notifyResult success=\"false\" msg=\"No.\"/>".to_owned(),                Some("No.")),
            (&rest, "{\"success\":false,\"msg\":\"No.\"}".to_owned(),                          Some("No.")),
            (&rest, "Thanks".to_owned(),                                                       None),
            (&rpc,  value(true),                                                               None),
            (&rpc,  value(false),                                                              Some("false")),
            (&rpc,  xmlrpc::fault(4, "No."),                                                   Some("No.")),
            (&soap, soap::response(soap::SoapVersion::V11, "pleaseNotify", true),                                      None),
            (&soap, soap::fault(soap::SoapVersion::V12, soap::SoapFaultCause::Client, "No."),                                                        Some("No.")),
        ];
        for (protocol, body, want) in cases {
            let checked = check_response(protocol, &reply(&body));
            let refused = match &checked {
                Err(UpstreamError::Refused(why)) => Some(why.as_str()),
                _ => None,
            };
            assert_eq!(refused, want, "{protocol:?} {body}");
        }
    }

    #[test]
    fn our_address_is_below_the_public_one() {
        #[rustfmt::skip]
        let cases = [
            ("https://a.test/",      "https://a.test/upstream/t"),
            ("https://a.test/gate",  "https://a.test/gate/upstream/t"),
            ("https://a.test/gate/", "https://a.test/gate/upstream/t"),
        ];
        for (public_url, want) in cases {
            assert_eq!(address(&Url::parse(public_url).unwrap(), "t").as_str(), want);
        }
        let own = Url::parse("https://a.test:8443/upstream/t").unwrap();
        let offer = AdvertisedUpstream {
            protocol: Protocol::HttpPost,
            endpoint: "https://cloud.test/pleaseNotify".to_owned(),
            topic: "https://b.test/".to_owned(),
        };
        let secret = Secret::new("x".to_owned()).unwrap();
        let wanted =
            UpstreamRequest { offer: &offer, secret: &secret, own: &own, is_at_caller: false };
        let parts = "port=8443&path=%2Fupstream%2Ft&protocol=https-post";
        let topic = "&url1=https%3A%2F%2Fb.test%2F";
        let want = format!("notifyProcedure=&{parts}&domain=a.test{topic}");
        assert_eq!(please_notify(&wanted), want);
        let want = format!("notifyProcedure=&{parts}{topic}");
        assert_eq!(please_notify(&UpstreamRequest { is_at_caller: true, ..wanted }), want);
    }
}
