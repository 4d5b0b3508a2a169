//! An endpoint: which methods it allows, how long its bodies may be, and the work around its
//! handler.
//!
//! Every request that an endpoint's route matches is read to its end, handed to the handler,
//! and its reply counted. Pages of other sites may send requests, so every reply
//! carries the headers of CORS.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::{Buf, Bytes};
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, Stream};
use http::header;
use http::uri::Authority;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use tokio::time::Instant;
use warp::Filter;
use warp::filters::BoxedFilter;
use warp::filters::path::FullPath;
use warp::reply::Response;

use crate::http::kit::body::{self, BodyReservation, CallRules};
use crate::http::kit::body_owner;
use crate::http::kit::client_address::{self, PeerAddr};
use crate::http::kit::rejection::Rejection;
use crate::http::kit::reply::{empty, set_header, without_body};
use crate::http::kit::request::Request;
use crate::http::kit::request_host::{self, RequestHost};
use crate::http::state::Gateway;

/// The headers that tell clients what is left of their budget, or that of their account
/// (draft-ietf-httpapi-ratelimit-headers).
const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// The properties of all requests at an endpoint.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Endpoint {
    /// The name of the endpoint in metrics.
    pub(crate) name: &'static str,
    /// The methods allowed. HEAD comes with GET, and OPTIONS with every method.
    pub(crate) methods: &'static [&'static str],
    /// The longest body read.
    pub(crate) body_limit_bytes: usize,
}

/// What answers a request whose path matches. It has no type of its own, so that the code around handlers is
/// compiled once and not for each.
type Handler = Box<dyn FnOnce(Arc<Gateway>, Request) -> BoxFuture<'static, Response> + Send>;

/// A request whose body has not been read yet.
struct UnreadRequest<S> {
    request: Request,
    body: S,
    call_rules: Option<CallRules>,
}

impl Endpoint {
    /// Returns the route of this endpoint: each request that `path` matches is read, and passed to
    /// `handle`.
    pub(crate) fn route<H, F>(
        self,
        gateway: &Arc<Gateway>,
        path: BoxedFilter<()>,
        handle: H,
    ) -> BoxedFilter<(Response,)>
    where
        H: Fn(Arc<Gateway>, Request) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Response> + Send + 'static,
    {
        let path = path.map(|| ()).boxed();
        self.route_with_param(gateway, path, move |gateway, request, ()| handle(gateway, request))
    }

    /// Returns the route of this endpoint, for a `path` that extracts a parameter.
    pub(crate) fn route_with_param<T, H, F>(
        self,
        gateway: &Arc<Gateway>,
        path: BoxedFilter<(T,)>,
        handle: H,
    ) -> BoxedFilter<(Response,)>
    where
        T: Send + 'static,
        H: Fn(Arc<Gateway>, Request, T) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Response> + Send + 'static,
    {
        self.route_calls(gateway, path, None, handle)
    }

    /// Returns the route of this endpoint, for bodies that may be procedure calls, which are read by
    /// rules of their own.
    pub(crate) fn route_calls<T, H, F>(
        self,
        gateway: &Arc<Gateway>,
        path: BoxedFilter<(T,)>,
        call_rules: Option<CallRules>,
        handle: H,
    ) -> BoxedFilter<(Response,)>
    where
        T: Send + 'static,
        H: Fn(Arc<Gateway>, Request, T) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Response> + Send + 'static,
    {
        let path = path.map(move |param| -> Handler {
            let handle = handle.clone();
            Box::new(move |gateway, request| handle(gateway, request, param).boxed())
        });
        self.route_handlers(Arc::clone(gateway), path.boxed(), call_rules)
    }

    /// Returns the route of this endpoint, for a `path` that extracts the handler.
    fn route_handlers(
        self,
        gateway: Arc<Gateway>,
        path: BoxedFilter<(Handler,)>,
        call_rules: Option<CallRules>,
    ) -> BoxedFilter<(Response,)> {
        let query = warp::query::raw().or(warp::any().map(String::new)).unify();
        let target = warp::path::full().and(query).and(request_host()).map(Target::new);
        path.and(warp::method())
            .and(target)
            .and(warp::header::headers_cloned())
            .and(warp::ext::optional::<PeerAddr>())
            .and(warp::body::stream())
            .then(move |handle, method, target, headers, peer, body| {
                let gateway = Arc::clone(&gateway);
                let request = request_head(&gateway, method, target, headers, peer);
                let unread = UnreadRequest { request, body, call_rules };
                async move { self.respond(gateway, unread, handle).await }
            })
            .boxed()
    }

    /// Reads the body of a request, calls the handler, and finishes its reply.
    async fn respond<S, B>(
        self,
        gateway: Arc<Gateway>,
        unread: UnreadRequest<S>,
        handle: Handler,
    ) -> Response
    where
        S: Stream<Item = Result<B, warp::Error>> + Send,
        B: Buf,
    {
        let UnreadRequest { mut request, body, call_rules } = unread;
        let started = Instant::now();
        let is_head = request.method == Method::HEAD;
        // Responses to GET requests are kept by caches that serve several clients.
        let is_limited =
            request.method == Method::POST && request.header("authorization").is_empty();
        let limited_client = request.limited_as().filter(|_| is_limited);
        let account = Arc::clone(&request.account);
        let owner = body_owner::find(&gateway, &request).await;
        let mut memory = BodyReservation::new(&gateway.documents, owner);
        let mut response = if request.method == Method::OPTIONS {
            self.preflight(&request)
        } else if !self.allows(&request.method) {
            self.method_not_allowed(&request)
        } else {
            let read = body::read(body, self.body_limit_bytes, call_rules, &mut memory);
            match read.await {
                Ok(bytes) => {
                    request.body = bytes;
                    handle(Arc::clone(&gateway), request).await
                }
                Err(unread) => match call_rules {
                    Some(rules) => (rules.reject)(&gateway, &request, &unread),
                    None => unread.rejection.to_response_for(&request),
                },
            }
        };
        self.finish(&gateway, &mut response, started);
        let quota = match account.get() {
            Some(account) => Some(gateway.account_rate_limit.quota(*account)),
            None => gateway.anonymous_rate_limit.quota(limited_client),
        };
        if let Some(quota) = quota {
            set_header(&mut response, RATE_LIMIT_POLICY, &quota.policy());
            set_header(&mut response, RATE_LIMIT, &quota.state());
        }
        if is_head { without_body(response) } else { response }
    }

    /// Finishes a reply: pages of other sites may read it, unless it is a page for people, and it
    /// is counted.
    pub(crate) fn finish(self, gateway: &Gateway, response: &mut Response, started: Instant) {
        const EXPOSED: HeaderValue = HeaderValue::from_static(
            "ETag, Link, WWW-Authenticate, RateLimit, RateLimit-Policy, Retry-After, Location, \
             Idempotency-Replayed, X-Feedgate-Note",
        );
        let headers = response.headers_mut();
        let content_type = headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
        if !content_type.is_some_and(|held| held.starts_with(b"text/html")) {
            headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
            headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
        }
        let (class, took) = (status_class(response.status()), started.elapsed());
        gateway.metrics.http_request(self.name, class, took);
    }

    fn allows(self, method: &Method) -> bool {
        let method = if *method == Method::HEAD { "GET" } else { method.as_str() };
        self.methods.contains(&method)
    }

    /// Returns the value of `Allow`, such as `GET, HEAD, OPTIONS`.
    fn allowed_methods(self) -> HeaderValue {
        let mut names: Vec<&str> = self.methods.to_vec();
        if names.contains(&"GET") {
            names.push("HEAD");
        }
        names.push("OPTIONS");
        HeaderValue::from_str(&names.join(", ")).expect("names of methods are ASCII letters")
    }

    /// Answers the request that a browser sends before a page of another site may send its own
    /// . All headers are allowed, because feedgate sets no cookies.
    fn preflight(self, request: &Request) -> Response {
        let mut response = empty(StatusCode::NO_CONTENT);
        let requested = request.headers.get(header::ACCESS_CONTROL_REQUEST_HEADERS).cloned();
        let headers = response.headers_mut();
        headers.insert(header::ALLOW, self.allowed_methods());
        headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, self.allowed_methods());
        headers.insert(
            header::ACCESS_CONTROL_ALLOW_HEADERS,
            requested.unwrap_or(HeaderValue::from_static("Authorization, Accept, Content-Type")),
        );
        headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("86400"));
        response
    }

    fn method_not_allowed(self, request: &Request) -> Response {
        let allowed = self.allowed_methods();
        let names = allowed.to_str().unwrap_or_default();
        let text = format!("This URL accepts only {names}.");
        let rejection = Rejection::new(StatusCode::METHOD_NOT_ALLOWED, text);
        let mut response = match request.is_rest() {
            true => rejection.to_response_for(request),
            false => rejection.to_response(),
        };
        response.headers_mut().insert(header::ALLOW, allowed);
        response
    }
}

fn status_class(status: StatusCode) -> &'static str {
    match status.as_u16() / 100 {
        1 => "1xx",
        2 => "2xx",
        3 => "3xx",
        4 => "4xx",
        _ => "5xx",
    }
}

/// The target of a request.
struct Target {
    path: FullPath,
    query: String,
    host: RequestHost,
    authority: Option<Authority>,
}

impl Target {
    fn new(
        path: FullPath,
        query: String,
        (host, authority): (RequestHost, Option<Authority>),
    ) -> Target {
        Target { path, query, host, authority }
    }
}

/// Returns a filter that extracts the host of a request, with its port, and matches every request.
fn request_host() -> impl Filter<Extract = ((RequestHost, Option<Authority>),), Error = Infallible>
+ Clone
+ Send
+ Sync
+ 'static {
    let named = |authority: Option<Authority>| match &authority {
        Some(named) => (RequestHost::Named(named.host().to_owned()), authority),
        None => (RequestHost::Missing, None),
    };
    let invalid = warp::any().map(|| (RequestHost::Invalid, None));
    warp::host::optional().map(named).or(invalid).unify()
}

/// Returns a request without its body.
fn request_head(
    gateway: &Gateway,
    method: Method,
    target: Target,
    headers: HeaderMap,
    peer: Option<PeerAddr>,
) -> Request {
    let trusted = &gateway.settings.trusted_proxies;
    let peer = peer.map(|PeerAddr(peer)| peer.ip());
    let client = client_address::find(peer, &headers, trusted);
    client_address::notice_proxy(peer, client);
    let is_host_own = target.host.is_own(&gateway.settings.public_url);
    let public_url = &gateway.settings.public_url;
    let is_origin_foreign =
        request_host::is_foreign(&headers, target.authority.as_ref(), public_url);
    let is_referer_foreign =
        request_host::is_referer_foreign(&headers, target.authority.as_ref(), public_url);
    let (path, query, body) = (target.path.as_str().to_owned(), target.query, Bytes::new());
    let public_url = gateway.public_url("").trim_end_matches('/').to_owned();
    let account = Arc::default();
    #[rustfmt::skip]
    let request = Request {
        method, path, query, headers, client, is_host_own, is_origin_foreign,
        is_referer_foreign, public_url, account, body,
    };
    request
}
