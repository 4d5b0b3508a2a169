//! Where connections come in: accepted, bounded, and ended in good order.
//!
//! What `warp::serve` leaves open is closed here (`docs/contributing/adr/0004-listener.md`):
//!
//! * A client has a limited time to send the headers of a request, its first one
//!   included, so that silent connections cannot fill the table.
//! * A client who takes nothing of its answer for a minute is cut off (rule S19).
//! * No more than so many connections are open; further ones wait in the kernel's
//!   backlog.
//! * Told to stop, the listener accepts no more, lets requests in hand finish, and
//!   cuts what is left at the deadline.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::Either;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use rustls_pki_types::pem::{self, PemObject};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::http::router::Doors;
use crate::http::serve::write_timeout::Patient;

/// Room for the headers of one request. A topic and a callback of 2 kB each, percent
/// encoded in a query, need 12 kB.
const HEADERS_LIMIT_BYTES: usize = 64 * 1024;
/// Requests at once on one HTTP/2 connection.
const STREAMS_AT_ONCE: u32 = 128;
/// How long to wait after the system refused to accept. Trying again at once would
/// spin: the connection that could not be accepted is still waiting.
const REFUSED_WAIT: Duration = Duration::from_millis(500);

/// Whom a request comes from: the other end of its connection. Every request carries
/// it as an extension; a proxy's word about its own client is for the doors to judge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerAddr(pub SocketAddr);

/// What the operator decides about connections that come in.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Connections open at once.
    pub max_connections: usize,
    /// How long a client may take to send its request's headers, and how long an idle
    /// connection is kept.
    pub header_timeout: Duration,
    /// How long requests in hand may take to finish once told to stop.
    pub drain: Duration,
    /// The certificate chain and the private key, both PEM files.
    pub tls: Option<(PathBuf, PathBuf)>,
}

/// Why nobody can come in.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The address is taken or not ours.
    #[error("cannot listen on {addr}")]
    Bind {
        /// The address that was asked for.
        addr: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// The certificate or its key cannot be used.
    #[error("cannot use {}: {reason}", path.display())]
    Tls {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

impl ListenError {
    /// A word for logs, listed in `docs/errors.md`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Bind { .. } => "cannot_listen",
            Self::Tls { .. } => "bad_certificate",
        }
    }
}

/// A bound address, at which nobody is served yet.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    addr: SocketAddr,
    settings: Settings,
    tls: Option<Arc<rustls::ServerConfig>>,
}

impl Listener {
    /// Binds `addr`; port 0 takes a free one.
    pub async fn bind(addr: SocketAddr, settings: Settings) -> Result<Listener, ListenError> {
        let tls = match &settings.tls {
            Some((cert, key)) => Some(Arc::new(tls_config(cert, key)?)),
            None => None,
        };
        let failed = |source| ListenError::Bind { addr, source };
        let socket = TcpListener::bind(addr).await.map_err(failed)?;
        let addr = socket.local_addr().map_err(failed)?;
        Ok(Listener { socket, addr, settings, tls })
    }

    /// Where it listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.addr
    }

    /// Serves these doors until `stop` is cancelled, and then what is in hand.
    pub async fn serve(self, doors: impl Into<Doors>, stop: CancellationToken) {
        let places = Arc::new(Semaphore::new(self.settings.max_connections));
        let graceful = GracefulShutdown::new();
        let cut = CancellationToken::new();
        let connection = Arc::new(Connection {
            builder: builder(&self.settings),
            doors: doors.into(),
            tls: self.tls.map(TlsAcceptor::from),
            header_timeout: self.settings.header_timeout,
        });

        loop {
            let next = async {
                let place = Arc::clone(&places).acquire_owned().await;
                (place.expect("the semaphore is never closed"), accept(&self.socket).await)
            };
            let (place, (stream, peer)) = tokio::select! {
                biased; // once told to stop, take nobody new
                () = stop.cancelled() => break,
                next = next => next,
            };
            let (connection, watcher) = (Arc::clone(&connection), graceful.watcher());
            let cut = cut.clone();
            tokio::spawn(async move {
                let _place: OwnedSemaphorePermit = place;
                tokio::select! {
                    () = cut.cancelled() => {}
                    () = connection.serve(stream, peer, watcher) => {}
                }
            });
        }

        drop(self.socket); // whoever knocks now is refused rather than kept waiting
        if timeout(self.settings.drain, graceful.shutdown()).await.is_err() {
            warn!("connections were cut: their requests did not finish in time");
        }
        cut.cancel();
    }
}

/// Accepts one connection, whatever it takes.
async fn accept(socket: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match socket.accept().await {
            Ok((stream, peer)) => {
                // Answers are small and written at once; waiting for more only delays.
                stream.set_nodelay(true).unwrap_or_default();
                return (stream, peer);
            }
            Err(err) if is_the_clients(&err) => {}
            Err(err) => {
                warn!(error = &err as &dyn std::error::Error, "cannot accept connections");
                sleep(REFUSED_WAIT).await;
            }
        }
    }
}

/// Whether the client went away before it was accepted, which says nothing of us.
fn is_the_clients(err: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(err.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

fn builder(settings: &Settings) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(settings.header_timeout)
        .max_buf_size(HEADERS_LIMIT_BYTES)
        // Shutting down its sending side must not lose a client its answer.
        .half_close(true);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(settings.header_timeout)
        .keep_alive_timeout(settings.header_timeout)
        .max_header_list_size(HEADERS_LIMIT_BYTES as u32)
        .max_concurrent_streams(STREAMS_AT_ONCE);
    builder
}

/// What all connections are served with.
struct Connection {
    builder: auto::Builder<TokioExecutor>,
    doors: Doors,
    tls: Option<TlsAcceptor>,
    header_timeout: Duration,
}

type Watcher = hyper_util::server::graceful::Watcher;

impl Connection {
    async fn serve(&self, stream: TcpStream, peer: SocketAddr, watcher: Watcher) {
        let stream = Patient::new(stream);
        let Some(tls) = &self.tls else {
            return self.talk(stream, peer, watcher).await;
        };
        match timeout(self.header_timeout, tls.accept(stream)).await {
            Ok(Ok(stream)) => self.talk(stream, peer, watcher).await,
            Ok(Err(err)) => debug!(error = &err as &dyn std::error::Error, "no TLS handshake"),
            Err(_) => debug!("no TLS handshake in time"),
        }
    }

    async fn talk<S>(&self, stream: S, peer: SocketAddr, watcher: Watcher)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let doors = self.doors.clone();
        let routes = TowerToHyperService::new(warp::service(doors.routes()));
        let spoken = CancellationToken::new();
        let heard = spoken.clone();
        let service = hyper::service::service_fn(move |mut request: http::Request<_>| {
            heard.cancel();
            request.extensions_mut().insert(PeerAddr(peer));
            match doors.at_hand(&request) {
                Some(reply) => Either::Left(std::future::ready(Ok::<_, Infallible>(reply))),
                None => Either::Right(hyper::service::Service::call(&routes, request)),
            }
        });
        let talk = self.builder.serve_connection(TokioIo::new(stream), service).into_owned();
        let mut talk = std::pin::pin!(watcher.watch(talk));

        // hyper's own timer begins once it knows which HTTP it is, so a client that
        // never says so is told off here.
        let ended = tokio::select! {
            biased;
            ended = &mut talk => ended,
            () = spoken.cancelled() => talk.await,
            () = sleep(self.header_timeout) => return,
        };
        if let Err(err) = ended {
            debug!(error = &*err, "a connection ended early");
        }
    }
}

fn tls_config(cert: &Path, key: &Path) -> Result<rustls::ServerConfig, ListenError> {
    let bad = |path: &Path, reason: String| ListenError::Tls { path: path.to_owned(), reason };
    let chain: Result<Vec<_>, _> = CertificateDer::pem_file_iter(cert).and_then(Iterator::collect);
    let chain = chain.map_err(|err| bad(cert, err.to_string()))?;
    if chain.is_empty() {
        return Err(bad(cert, "it holds no certificate in PEM".to_owned()));
    }
    let secret = PrivateKeyDer::from_pem_file(key).map_err(|err| match err {
        pem::Error::NoItemsFound => bad(key, "it holds no private key in PEM".to_owned()),
        err => bad(key, err.to_string()),
    })?;

    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|err| bad(cert, err.to_string()))?
        .with_no_client_auth()
        .with_single_cert(chain, secret);
    let mut config = config.map_err(|err| bad(cert, err.to_string()))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}
