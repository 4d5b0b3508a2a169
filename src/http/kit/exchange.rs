//! A request as the doors see it, and the replies they all give.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::{Buf, Bytes};
use futures_util::Stream;
use http::header::{self, HeaderName};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use tokio::time::Instant;
use warp::Filter;
use warp::filters::BoxedFilter;
use warp::reply::{Reply, Response};

use crate::http::Gateway;
use crate::http::kit::body::{self, Messages};
use crate::http::kit::client_address;
use crate::http::serve::listener::PeerAddr;

/// What is said to be text is not to be taken for a page.
const NO_SNIFFING: HeaderValue = HeaderValue::from_static("nosniff");

/// What a door is like before it is opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Door {
    /// What it is called in metrics.
    pub(crate) name: &'static str,
    /// What may be asked; HEAD goes with GET, OPTIONS with everything.
    pub(crate) methods: &'static [&'static str],
    /// The longest body read.
    pub(crate) body_limit_bytes: usize,
}

/// A request, read to its end.
#[derive(Debug)]
pub(crate) struct Asked {
    /// How.
    pub(crate) method: Method,
    /// The query, without the question mark; empty if there is none.
    pub(crate) query: String,
    /// With what headers.
    pub(crate) headers: HeaderMap,
    /// Who asks; `None` where the listener could not tell.
    pub(crate) client: Option<IpAddr>,
    /// Whether it is not known who is behind `client`: it is a proxy, and none of ours.
    pub(crate) is_hidden: bool,
    /// With what body.
    pub(crate) body: Bytes,
}

impl Asked {
    /// A header as text; empty if there is none.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// The media type of the body, in lower case, without parameters.
    pub(crate) fn media_type(&self) -> String {
        let value = self.header("content-type");
        value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
    }
}

impl Door {
    /// What stands behind this door: every request that `route` lets through is read
    /// and handed to `handle`.
    pub(crate) fn open<H, F>(
        self,
        gateway: &Arc<Gateway>,
        route: BoxedFilter<()>,
        handle: H,
    ) -> BoxedFilter<(Response,)>
    where
        H: Fn(Arc<Gateway>, Asked) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Response> + Send,
    {
        let route = route.map(|| ()).boxed();
        self.open_with(gateway, route, move |gateway, asked, ()| handle(gateway, asked))
    }

    /// The same for a route that takes something from the path.
    pub(crate) fn open_with<T, H, F>(
        self,
        gateway: &Arc<Gateway>,
        route: BoxedFilter<(T,)>,
        handle: H,
    ) -> BoxedFilter<(Response,)>
    where
        T: Send + 'static,
        H: Fn(Arc<Gateway>, Asked, T) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Response> + Send,
    {
        self.open_messages(gateway, route, None, handle)
    }

    /// The same for a door that reads messages.
    pub(crate) fn open_messages<T, H, F>(
        self,
        gateway: &Arc<Gateway>,
        route: BoxedFilter<(T,)>,
        messages: Option<Messages>,
        handle: H,
    ) -> BoxedFilter<(Response,)>
    where
        T: Send + 'static,
        H: Fn(Arc<Gateway>, Asked, T) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Response> + Send,
    {
        let gateway = Arc::clone(gateway);
        let query = warp::query::raw().or(warp::any().map(String::new)).unify();
        route
            .and(warp::method())
            .and(query)
            .and(warp::header::headers_cloned())
            .and(warp::ext::optional::<PeerAddr>())
            .and(warp::body::stream())
            .then(move |from_path, method, query, headers, peer, body| {
                let (gateway, handle) = (Arc::clone(&gateway), handle.clone());
                let (client, is_hidden) = whose(peer, &headers, &gateway);
                let body_read = Bytes::new();
                let asked = Asked { method, query, headers, client, is_hidden, body: body_read };
                let handle = move |gateway, asked| handle(gateway, asked, from_path);
                async move { self.answer(gateway, asked, (body, messages), handle).await }
            })
            .boxed()
    }

    async fn answer<S, B, H, F>(
        self,
        gateway: Arc<Gateway>,
        mut asked: Asked,
        (body, messages): (S, Option<Messages>),
        handle: H,
    ) -> Response
    where
        S: Stream<Item = Result<B, warp::Error>> + Send,
        B: Buf,
        H: FnOnce(Arc<Gateway>, Asked) -> F,
        F: Future<Output = Response> + Send,
    {
        let began = Instant::now();
        let is_head = asked.method == Method::HEAD;
        let mut response = if asked.method == Method::OPTIONS {
            self.preflight(&asked)
        } else if !self.allows(&asked.method) {
            self.not_allowed()
        } else {
            match body::read(body, self.body_limit_bytes, messages).await {
                Ok(bytes) => {
                    asked.body = bytes;
                    handle(Arc::clone(&gateway), asked).await
                }
                Err(unread) => match messages {
                    Some(messages) => (messages.refuse)(&gateway, &asked, &unread),
                    None => unread.reply(),
                },
            }
        };
        self.hand_out(&gateway, &mut response, began);
        if is_head { without_body(response) } else { response }
    }

    /// What is done with every reply before it goes out: pages of other sites may read it
    /// (row A-13), and it is counted.
    pub(crate) fn hand_out(self, gateway: &Gateway, response: &mut Response, began: Instant) {
        const EXPOSED: HeaderValue = HeaderValue::from_static("ETag, Link, WWW-Authenticate");
        let headers = response.headers_mut();
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
        gateway.metrics.answered(self.name, class(response.status()), began.elapsed());
    }

    fn allows(self, method: &Method) -> bool {
        let method = if *method == Method::HEAD { "GET" } else { method.as_str() };
        self.methods.contains(&method)
    }

    /// `GET, HEAD, OPTIONS`
    fn allow(self) -> HeaderValue {
        let mut names: Vec<&str> = self.methods.to_vec();
        if names.contains(&"GET") {
            names.push("HEAD");
        }
        names.push("OPTIONS");
        HeaderValue::from_str(&names.join(", ")).expect("names of methods are ASCII letters")
    }

    /// What a browser asks before it lets a page of another site ask us (row A-13).
    /// Whatever headers the page wants to send, it may: no cookie of ours is among them.
    fn preflight(self, asked: &Asked) -> Response {
        let mut response = empty(StatusCode::NO_CONTENT);
        let wanted = asked.headers.get(header::ACCESS_CONTROL_REQUEST_HEADERS).cloned();
        let headers = response.headers_mut();
        headers.insert(header::ALLOW, self.allow());
        headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, self.allow());
        headers.insert(
            header::ACCESS_CONTROL_ALLOW_HEADERS,
            wanted.unwrap_or(HeaderValue::from_static("Authorization, Accept, Content-Type")),
        );
        headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("86400"));
        response
    }

    fn not_allowed(self) -> Response {
        let allow = self.allow();
        let names = allow.to_str().unwrap_or_default();
        let mut response =
            plain(StatusCode::METHOD_NOT_ALLOWED, &format!("This address takes {names} only."));
        response.headers_mut().insert(header::ALLOW, allow);
        response
    }
}

fn class(status: StatusCode) -> &'static str {
    match status.as_u16() / 100 {
        1 => "1xx",
        2 => "2xx",
        3 => "3xx",
        4 => "4xx",
        _ => "5xx",
    }
}

/// Who asks, and whether that is only a proxy.
fn whose(peer: Option<PeerAddr>, headers: &HeaderMap, gateway: &Gateway) -> (Option<IpAddr>, bool) {
    let Some(PeerAddr(peer)) = peer else { return (None, true) };
    let (peer, trusted) = (peer.ip(), &gateway.settings.trusted_proxies);
    let client = client_address::address(peer, headers, trusted);
    (Some(client), client_address::is_hidden(peer, headers, trusted))
}

/// A reply of one sentence. Who is not signed in is told how (RFC 9110 `#section-11.6.1`).
pub(crate) fn plain(status: StatusCode, text: &str) -> Response {
    let mut response = with_type(status, "text/plain; charset=utf-8", format!("{text}\n"));
    if status == StatusCode::UNAUTHORIZED {
        set(&mut response, header::WWW_AUTHENTICATE, "Basic realm=\"feedgate\", charset=\"UTF-8\"");
    }
    response
}

/// The same reply; where the method was not allowed, people are told `how` to ask.
pub(crate) fn explained(reply: Response, how: &str) -> Response {
    if reply.status() != StatusCode::METHOD_NOT_ALLOWED {
        return reply;
    }
    let mut told = plain(StatusCode::METHOD_NOT_ALLOWED, how);
    for (name, value) in reply.headers() {
        if *name != header::CONTENT_LENGTH {
            told.headers_mut().insert(name, value.clone());
        }
    }
    told
}

/// A reply without a body.
pub(crate) fn empty(status: StatusCode) -> Response {
    status.into_response()
}

/// A reply with a body of this type.
pub(crate) fn with_type(
    status: StatusCode,
    content_type: &str,
    body: impl Into<Bytes>,
) -> Response {
    let mut response = Response::new(body.into().into());
    *response.status_mut() = status;
    set(&mut response, header::CONTENT_TYPE, content_type);
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, NO_SNIFFING);
    response
}

/// Sets a header, unless the value cannot be one (rule S35).
pub(crate) fn set(response: &mut Response, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) {
        response.headers_mut().insert(name, value);
    }
}

/// Marks a reply that carries what strangers published: a browser may show it, but
/// nothing in it may run (rule S24).
pub(crate) fn as_strangers_words(mut response: Response) -> Response {
    const RUN_NOTHING: HeaderValue = HeaderValue::from_static("default-src 'none'; sandbox");
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, NO_SNIFFING);
    headers.insert(header::CONTENT_SECURITY_POLICY, RUN_NOTHING);
    response
}

/// Whether `If-None-Match` names this entity tag. Compared weakly (RFC 9110
/// `#field.if-none-match`).
pub(crate) fn is_known(headers: &HeaderMap, etag: &str) -> bool {
    fn bare(tag: &str) -> &str {
        tag.trim().trim_start_matches("W/")
    }
    let lists = headers.get_all(header::IF_NONE_MATCH).iter();
    let mut held = lists.filter_map(|list| list.to_str().ok()).flat_map(|list| list.split(','));
    held.any(|tag| tag.trim() == "*" || bare(tag) == bare(etag))
}

/// What is said where there is no door.
pub(crate) fn nothing_here() -> Response {
    plain(StatusCode::NOT_FOUND, "There is nothing at this address.")
}

/// What is said when the store fails; the cause is in the log, not on the wire.
pub(crate) fn out_of_order(err: &(dyn std::error::Error + 'static)) -> Response {
    tracing::error!(error = err, "a door could not be served");
    let mut response =
        plain(StatusCode::SERVICE_UNAVAILABLE, "feedgate is out of order, please try again later.");
    set(&mut response, header::RETRY_AFTER, "30");
    response
}

/// The same reply to HEAD: all headers, no body. How long the document is that has not
/// changed was not looked up, and nothing else may stand there (RFC 9110
/// `#field.content-length`).
fn without_body(response: Response) -> Response {
    use hyper::body::Body;

    let length = response.body().size_hint().exact();
    let (mut parts, _) = response.into_parts();
    if let Some(length) = length.filter(|_| parts.status != StatusCode::NOT_MODIFIED) {
        parts.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    Response::from_parts(parts, Bytes::new().into())
}
