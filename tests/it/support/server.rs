//! A small HTTP server that answers with a function, and a client to call ours with.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

/// What a server answers.
pub(crate) type Answer = Response<Full<Bytes>>;

/// A request as it was received.
#[derive(Clone, Debug)]
pub(crate) struct ReceivedRequest {
    /// Its method.
    pub(crate) method: Method,
    /// The path, without the query.
    pub(crate) path: String,
    /// The query, decoded.
    pub(crate) query: Vec<(String, String)>,
    /// Its headers.
    pub(crate) headers: HeaderMap,
    /// Its body.
    pub(crate) body: Bytes,
}

impl ReceivedRequest {
    /// The first value of this name in the query.
    pub(crate) fn query(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(held, _)| held == name).map(|(_, value)| value.as_str())
    }

    /// The value of this header, if it is there and readable.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The first value of this name in a form.
    pub(crate) fn form(&self, name: &str) -> Option<String> {
        let mut pairs = url::form_urlencoded::parse(&self.body);
        pairs.find(|(held, _)| held == name).map(|(_, value)| value.into_owned())
    }

    /// The body as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// A server on a free port of this machine; it ends when dropped.
pub(crate) struct Server {
    addr: SocketAddr,
    _stop: DropGuard,
}

impl Server {
    /// Starts a server that answers with `answer`.
    pub(crate) async fn start<F, A>(answer: F) -> Server
    where
        F: Fn(ReceivedRequest) -> A + Send + Sync + 'static,
        A: Future<Output = Answer> + Send + 'static,
    {
        Server::listen("127.0.0.1", answer).await
    }

    /// Starts a server that answers with `answer` at all addresses of this machine.
    pub(crate) async fn start_everywhere<F, A>(answer: F) -> Server
    where
        F: Fn(ReceivedRequest) -> A + Send + Sync + 'static,
        A: Future<Output = Answer> + Send + 'static,
    {
        Server::listen("0.0.0.0", answer).await
    }

    async fn listen<F, A>(ip: &str, answer: F) -> Server
    where
        F: Fn(ReceivedRequest) -> A + Send + Sync + 'static,
        A: Future<Output = Answer> + Send + 'static,
    {
        let listener = TcpListener::bind((ip, 0)).await.unwrap();
        let addr = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let answer = Arc::new(answer);
        let stopped = stop.clone();
        tokio::spawn(stopped.run_until_cancelled_owned(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let answer = Arc::clone(&answer);
                let service = service_fn(move |request: Request<Incoming>| {
                    let answer = Arc::clone(&answer);
                    async move { Ok::<_, hyper::Error>(answer(read(request).await?).await) }
                });
                // A caller that hangs up in the middle is no business of the test.
                tokio::spawn(
                    hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service),
                );
            }
        }));
        Server { addr, _stop: stop.drop_guard() }
    }

    /// `http://127.0.0.1:port` and this path, which begins with a slash.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr)
    }

    /// Its port.
    pub(crate) fn port(&self) -> u16 {
        self.addr.port()
    }
}

async fn read(request: Request<Incoming>) -> Result<ReceivedRequest, hyper::Error> {
    let (head, body) = request.into_parts();
    let query = head.uri.query().unwrap_or_default();
    Ok(ReceivedRequest {
        method: head.method,
        path: head.uri.path().to_owned(),
        query: url::form_urlencoded::parse(query.as_bytes()).into_owned().collect(),
        headers: head.headers,
        body: body.collect().await?.to_bytes(),
    })
}

/// An answer with this status and text.
pub(crate) fn say(status: StatusCode, text: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(text.into()));
    *answer.status_mut() = status;
    answer
}

/// A client without feedgate's guard, which would not let it call this machine.
#[expect(clippy::disallowed_methods, reason = "feedgate under test listens on loopback")]
pub(crate) fn client() -> &'static reqwest::Client {
    static CLIENT: OnceLock<reqwest::Client> = OnceLock::new();
    CLIENT.get_or_init(|| {
        // Reqwest wants to know which TLS it may use, though these tests use none.
        let _already = rustls::crypto::ring::default_provider().install_default();
        // Each test has a runtime of its own, and a pooled connection belongs to one.
        reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0).build().unwrap()
    })
}
