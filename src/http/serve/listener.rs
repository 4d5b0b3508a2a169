//! The listener: accepts connections, bounds them, and closes them in order.
//!
//! The limits that `warp::serve` lacks are set here (`docs/adr/0004-listener.md`):
//!
//! * A client has a limited time to send the headers of a request, its first one included, so that
//!   silent connections cannot exhaust the limit.
//! * A client that reads nothing of its reply for a minute is disconnected (rule S19).
//! * The number of open connections is limited; further ones wait in the kernel's backlog. A client
//!   that has its share of them open is disconnected at once.
//! * At shutdown the listener accepts nothing more, lets running requests finish, and closes the
//!   remaining ones at the deadline.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, TryFutureExt};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use ipnet::IpNet;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::http::kit::client_address::PeerAddr;
use crate::http::kit::date::with_date;
use crate::http::router::Router;
use crate::http::serve::client_connections::{ClientConnections, CountedConnection};
use crate::http::serve::tls::{BadTlsFile, ListenerCertificate};
use crate::http::serve::write_timeout::WriteTimeout;
use crate::jobs::runner;

/// The most bytes of headers in one request. A topic and a callback of 2 kB each need 12 kB when
/// they are percent-encoded in a query.
const HEADERS_LIMIT_BYTES: usize = 64 * 1024;
/// Concurrent requests on one HTTP/2 connection.
const MAX_STREAMS: u32 = 128;
/// How long to wait after accepting a connection failed. Trying again at once would spin,
/// because the connection that could not be accepted is still in the backlog.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(500);

/// The operator's settings for incoming connections.
#[derive(Clone, Debug)]
pub struct ListenerSettings {
    /// The most open connections.
    pub max_connections: usize,
    /// The most open connections of one IPv4 address or one IPv6 /64.
    pub max_connections_per_client: usize,
    /// Proxies, which may have more.
    pub trusted_proxies: Vec<IpNet>,
    /// How long a client may take to send its request's headers, and how long an idle
    /// connection is kept.
    pub header_timeout: Duration,
    /// How long running requests may take to finish at shutdown.
    pub drain: Duration,
    /// The certificate chain and the private key, both PEM files.
    pub tls: Option<(PathBuf, PathBuf)>,
}

/// The reason why the listener cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The address is taken or not ours.
    #[error("cannot listen on {addr}")]
    Bind {
        /// The requested address.
        addr: SocketAddr,
        /// The error of the system.
        source: io::Error,
    },
    /// The certificate or its key cannot be used.
    #[error("cannot use {}: {reason}", path.display())]
    Tls {
        /// The file.
        path: PathBuf,
        /// The reason why the file cannot be used.
        reason: String,
    },
}

impl ListenError {
    /// Returns a word for logs, listed in `docs/errors.md`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Bind { .. } => "cannot_listen",
            Self::Tls { .. } => "bad_certificate",
        }
    }
}

impl From<BadTlsFile> for ListenError {
    fn from(BadTlsFile { path, reason }: BadTlsFile) -> ListenError {
        ListenError::Tls { path, reason }
    }
}

/// A bound address, before connections are accepted.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    addr: SocketAddr,
    settings: ListenerSettings,
    tls: Option<Arc<ListenerCertificate>>,
}

impl Listener {
    /// Binds `addr`; port 0 takes a free one.
    pub async fn bind(
        addr: SocketAddr,
        settings: ListenerSettings,
    ) -> Result<Listener, ListenError> {
        let tls = match &settings.tls {
            Some((cert, key)) => Some(Arc::new(ListenerCertificate::read(cert, key)?)),
            None => None,
        };
        let failed = |source| ListenError::Bind { addr, source };
        let socket = TcpListener::bind(addr).await.map_err(failed)?;
        let addr = socket.local_addr().map_err(failed)?;
        Ok(Listener { socket, addr, settings, tls })
    }

    /// Returns the bound address.
    pub fn local_addr(&self) -> SocketAddr {
        self.addr
    }

    /// Serves requests until `stop` is cancelled, and then finishes those that are running.
    pub async fn serve(self, router: impl Into<Router>, stop: CancellationToken) {
        let connections = Arc::new(Semaphore::new(self.settings.max_connections));
        let clients = Arc::new(ClientConnections::new(
            self.settings.max_connections_per_client,
            self.settings.trusted_proxies.clone(),
        ));
        let graceful = GracefulShutdown::new();
        let cut = CancellationToken::new();
        if let Some(tls) = &self.tls {
            tokio::spawn(Arc::clone(tls).reload_changes(stop.clone()));
        }
        let connection = Arc::new(Connection {
            builder: builder(&self.settings),
            router: router.into(),
            tls: self.tls.clone(),
            header_timeout: self.settings.header_timeout,
        });

        loop {
            let next = async {
                let permit = Arc::clone(&connections).acquire_owned().await;
                (permit.expect("the semaphore is never closed"), accept(&self.socket).await)
            };
            let (permit, (stream, peer)) = tokio::select! {
                biased; // accept nothing more once `stop` is cancelled
                () = stop.cancelled() => break,
                next = next => next,
            };
            let Some(counted) = clients.admit(peer.ip()) else { continue };
            let (connection, watcher) = (Arc::clone(&connection), graceful.watcher());
            let cut = cut.clone();
            tokio::spawn(async move {
                let _permits: (OwnedSemaphorePermit, CountedConnection) = (permit, counted);
                tokio::select! {
                    () = cut.cancelled() => {}
                    () = connection.serve(stream, peer, watcher) => {}
                }
            });
        }

        drop(self.socket); // new connections are refused rather than left in the backlog
        if timeout(self.settings.drain, graceful.shutdown()).await.is_err() {
            warn!(
                "closed connections whose requests did not finish within the shutdown grace period"
            );
        }
        cut.cancel();
    }
}

/// Accepts one connection, and tries again for as long as that fails.
async fn accept(socket: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match socket.accept().await {
            Ok((stream, peer)) => {
                // Replies are small and written in one piece, so waiting for more only delays them.
                stream.set_nodelay(true).unwrap_or_default();
                return (stream, peer);
            }
            Err(err) if is_client_error(&err) => {}
            Err(err) => {
                warn!(error = &err as &dyn std::error::Error, "cannot accept connections");
                sleep(ACCEPT_RETRY_DELAY).await;
            }
        }
    }
}

/// Returns whether the client closed the connection before it was accepted, which is no failure
/// of this gateway.
fn is_client_error(err: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(err.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

fn builder(settings: &ListenerSettings) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(settings.header_timeout)
        .max_buf_size(HEADERS_LIMIT_BYTES)
        // A client that has shut down its sending side still gets its reply.
        .half_close(true);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(settings.header_timeout)
        .keep_alive_timeout(settings.header_timeout)
        .max_header_list_size(HEADERS_LIMIT_BYTES as u32)
        .max_concurrent_streams(MAX_STREAMS);
    builder
}

/// The state shared by all connections.
struct Connection {
    builder: auto::Builder<TokioExecutor>,
    router: Router,
    tls: Option<Arc<ListenerCertificate>>,
    header_timeout: Duration,
}

type Watcher = hyper_util::server::graceful::Watcher;

impl Connection {
    /// Serves a connection to its end. What only a part of it needs is on the heap, because a future has
    /// room for all parts for as long as it lives, and there may be thousands of open connections.
    async fn serve(&self, stream: TcpStream, peer: SocketAddr, watcher: Watcher) {
        let stream = WriteTimeout::new(stream);
        let Some(tls) = &self.tls else {
            return Box::pin(self.serve_http(stream, peer, watcher)).await;
        };
        match Box::pin(timeout(self.header_timeout, tls.acceptor().accept(stream))).await {
            Ok(Ok(stream)) => Box::pin(self.serve_http(stream, peer, watcher)).await,
            Ok(Err(err)) => debug!(error = &err as &dyn std::error::Error, "TLS handshake failed"),
            Err(_) => debug!("TLS handshake timed out"),
        }
    }

    async fn serve_http<S>(&self, stream: S, peer: SocketAddr, watcher: Watcher)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let router = self.router.clone();
        let routes = TowerToHyperService::new(warp::service(router.routes()));
        let first_request = CancellationToken::new();
        let has_request = first_request.clone();
        let service = hyper::service::service_fn(move |mut request: http::Request<_>| {
            has_request.cancel();
            request.extensions_mut().insert(PeerAddr(peer));
            match router.prepare(&mut request) {
                Some(reply) => {
                    let reply = with_date(reply, runner::now());
                    Either::Left(std::future::ready(Ok::<_, Infallible>(reply)))
                }
                None => {
                    let replied = hyper::service::Service::call(&routes, request);
                    Either::Right(replied.map_ok(|reply| with_date(reply, runner::now())))
                }
            }
        });
        let connection = self.builder.serve_connection(TokioIo::new(stream), service);
        let mut connection = Box::pin(watcher.watch(connection.into_owned()));

        // hyper starts its own timer only once it knows the version of HTTP, so a client that
        // sends nothing is timed out here.
        let ended = tokio::select! {
            biased;
            ended = &mut connection => ended,
            () = first_request.cancelled() => connection.await,
            () = sleep(self.header_timeout) => return,
        };
        if let Err(err) = ended {
            debug!(error = &*err, "connection closed early");
        }
    }
}
