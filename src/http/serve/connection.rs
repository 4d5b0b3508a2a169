//! One connection: its version of HTTP, its requests, and its end.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::{Either, FutureExt, ready};
use http::{HeaderValue, header};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, sleep_until, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tracing::debug;
use warp::reply::Response;

use crate::http::kit::client_address::PeerAddr;
use crate::http::kit::date::with_date;
use crate::http::router::Router;
use crate::http::serve::http_version::{self, Begun, HttpVersion};
use crate::http::serve::open_ended::{self, is_open_ended, may_be_open_ended};
use crate::http::serve::stalled_responses::WaitingResponses;
use crate::http::serve::tls::ListenerCertificate;
use crate::http::serve::write_timeout::WriteTimeout;
use crate::jobs::runner;

/// The most bytes of headers in one request. A topic and a callback of 2 kB each need 12 kB when
/// they are percent-encoded in a query.
const HEADERS_LIMIT_BYTES: usize = 64 * 1024;
/// What tells browsers that they shall use TLS from now on, for a year (RFC 6797). They heed it over TLS
/// only, with a certificate that they trust, and for names, not for addresses.
const STRICT_TRANSPORT_SECURITY: HeaderValue = HeaderValue::from_static("max-age=31536000");
/// Concurrent requests on one HTTP/2 connection.
const MAX_STREAMS: u32 = 128;

/// Serves connections. What only a part of a connection needs is on the heap, because a future has
/// room for all parts for as long as it lives, and there may be thousands of open connections.
pub(super) struct ConnectionServer {
    http1: http1::Builder,
    http2: http2::Builder<TokioExecutor>,
    router: Router,
    tls: Option<Arc<ListenerCertificate>>,
    header_timeout: Duration,
}

/// A connection that is being served.
struct Serving {
    peer: SocketAddr,
    /// Tells that the connection is to end after the requests that are running.
    closing: watch::Receiver<()>,
    /// When a client that has sent no request is disconnected.
    deadline: Instant,
    has_request: CancellationToken,
}

impl ConnectionServer {
    /// Returns a server for these routes. `header_timeout` is how long a client may take to send the
    /// headers of a request.
    pub(super) fn new(
        router: Router,
        tls: Option<Arc<ListenerCertificate>>,
        header_timeout: Duration,
    ) -> ConnectionServer {
        let mut http1 = http1::Builder::new();
        http1
            .timer(TokioTimer::new())
            .header_read_timeout(header_timeout)
            .max_buf_size(HEADERS_LIMIT_BYTES)
            // A client that has shut down its sending side still gets its reply.
            .half_close(true);
        let mut http2 = http2::Builder::new(TokioExecutor::new());
        http2
            .timer(TokioTimer::new())
            .keep_alive_interval(header_timeout)
            .keep_alive_timeout(header_timeout)
            .max_header_list_size(HEADERS_LIMIT_BYTES as u32)
            .max_concurrent_streams(MAX_STREAMS);
        ConnectionServer { http1, http2, router, tls, header_timeout }
    }

    /// Serves a connection to its end. After `closing` has changed it takes no further request.
    pub(super) async fn serve(
        &self,
        stream: TcpStream,
        peer: SocketAddr,
        closing: watch::Receiver<()>,
    ) {
        let stream = WriteTimeout::new(stream);
        let Some(tls) = &self.tls else {
            return Box::pin(self.serve_http(stream, peer, closing)).await;
        };
        match Box::pin(timeout(self.header_timeout, tls.acceptor().accept(stream))).await {
            Ok(Ok(stream)) => Box::pin(self.serve_http(stream, peer, closing)).await,
            Ok(Err(err)) => debug!(error = &err as &dyn std::error::Error, "TLS handshake failed"),
            Err(_) => debug!("TLS handshake timed out"),
        }
    }

    async fn serve_http<S>(&self, stream: S, peer: SocketAddr, closing: watch::Receiver<()>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let deadline = Instant::now() + self.header_timeout;
        let has_request = CancellationToken::new();
        let mut serving = Serving { peer, closing, deadline, has_request };
        let Some((version, stream)) = serving.begin(stream).await else { return };
        match version {
            HttpVersion::Http2 => Box::pin(self.serve_http2(stream, serving)).await,
            HttpVersion::Http1 => {
                let taken_back = Box::pin(self.serve_http1(stream, &mut serving)).await;
                if let Some((stream, response)) = taken_back
                    && let Err(err) = open_ended::send(stream, response).await
                {
                    debug!(error = &err as &dyn std::error::Error, "a stream closed early");
                }
            }
        }
    }

    async fn serve_http2<S>(&self, stream: Begun<S>, mut serving: Serving)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (routes, waiting) = (self.routes(&serving), WaitingResponses::default());
        let watched = waiting.clone();
        let service = hyper::service::service_fn(move |request| {
            let (reply, watched) = (routes.reply(request), watched.clone());
            async move { Ok::<_, Infallible>(reply.await.map(|body| watched.watch(body))) }
        });
        let connection = self.http2.serve_connection(TokioIo::new(stream), service);
        let mut connection = Box::pin(connection);
        let driven =
            serving.drive(&mut connection, |connection| connection.as_mut().graceful_shutdown());
        tokio::select! {
            () = driven => {}
            () = waiting.stalled() => debug!("a client did not read its response"),
        }
    }

    /// Serves requests of HTTP/1. If the response to the first one is open-ended, the connection and
    /// that response are returned. For later requests, hyper might still hold a part of the response
    /// before, if the client has sent them before it had read that.
    async fn serve_http1<S>(
        &self,
        stream: Begun<S>,
        serving: &mut Serving,
    ) -> Option<(Begun<S>, Response)>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let routes = self.routes(serving);
        let (taken, mut open_ended) = oneshot::channel();
        let taken = Mutex::new(Some(taken));
        let service = hyper::service::service_fn(move |request| {
            let taken = taken.lock().unwrap_or_else(PoisonError::into_inner).take();
            let taken = taken.filter(|_| may_be_open_ended(&request));
            let reply = routes.reply(request);
            async move {
                let reply = reply.await;
                match taken {
                    Some(taken) if is_open_ended(&reply) => match taken.send(reply) {
                        Ok(()) => std::future::pending().await,
                        Err(reply) => Ok(reply),
                    },
                    _ => Ok::<_, Infallible>(reply),
                }
            }
        });
        let mut connection = self.http1.serve_connection(TokioIo::new(stream), service);
        let close = |connection: &mut http1::Connection<_, _>| {
            Pin::new(connection).graceful_shutdown();
        };
        let response = tokio::select! {
            biased;
            Ok(response) = &mut open_ended => response,
            () = serving.drive(&mut connection, close) => return None,
        };
        Some((connection.into_parts().io.into_inner(), response))
    }

    fn routes(&self, serving: &Serving) -> Routes {
        let has_request = serving.has_request.clone();
        let has_tls = self.tls.is_some();
        Routes { router: self.router.clone(), peer: serving.peer, has_request, has_tls }
    }
}

impl Serving {
    /// Reads the first bytes of a connection, which tell its version of HTTP; `None` if they do not
    /// arrive.
    async fn begin<S: AsyncRead + Unpin>(&mut self, stream: S) -> Option<(HttpVersion, Begun<S>)> {
        let deadline = self.deadline;
        let begun = tokio::select! {
            begun = timeout_at(deadline, http_version::begin(stream)) => begun.ok()?,
            _ = self.closing.changed() => return None, // there is no request yet
        };
        let failed = |err: &std::io::Error| {
            debug!(error = err as &dyn std::error::Error, "connection closed early")
        };
        begun.inspect_err(failed).ok()
    }

    /// Drives a connection to its end. hyper has no time limit before the first request of HTTP/2, and
    /// one from its own beginning for that of HTTP/1, so a client that sends none is timed out here.
    async fn drive<C>(&mut self, connection: &mut C, close: impl Fn(&mut C))
    where
        C: Future<Output = hyper::Result<()>> + Unpin,
    {
        let mut is_closing = false;
        let ended = loop {
            tokio::select! {
                biased;
                ended = &mut *connection => break ended,
                _ = self.closing.changed(), if !is_closing => {
                    is_closing = true;
                    close(connection);
                }
                () = sleep_until(self.deadline), if !self.has_request.is_cancelled() => return,
                () = self.has_request.cancelled(), if !self.has_request.is_cancelled() => {}
            }
        };
        if let Err(err) = ended {
            debug!(error = &err as &dyn std::error::Error, "connection closed early");
        }
    }
}

/// The routes, for the requests of one connection.
struct Routes {
    router: Router,
    peer: SocketAddr,
    has_request: CancellationToken,
    has_tls: bool,
}

impl Routes {
    fn reply(
        &self,
        mut request: http::Request<Incoming>,
    ) -> impl Future<Output = Response> + use<> {
        self.has_request.cancel();
        request.extensions_mut().insert(PeerAddr(self.peer));
        let reply = match self.router.prepare(&mut request) {
            Some(reply) => Either::Left(ready(reply)),
            None => {
                let routes = TowerToHyperService::new(warp::service(self.router.routes()));
                let replied = hyper::service::Service::call(&routes, request);
                Either::Right(replied.map(|Ok(reply): Result<Response, Infallible>| reply))
            }
        };
        let has_tls = self.has_tls;
        reply.map(move |mut reply| {
            if has_tls {
                let headers = reply.headers_mut();
                headers.insert(header::STRICT_TRANSPORT_SECURITY, STRICT_TRANSPORT_SECURITY);
            }
            with_date(reply, runner::now())
        })
    }
}
