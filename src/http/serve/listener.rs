//! The listener: accepts connections, bounds them, and closes them in order.
//!
//! The limits that `warp::serve` lacks are set here (`docs/adr/0004-listener.md`):
//!
//! * A client has a limited time to send the headers of a request, its first one included, so that
//!   silent connections cannot exhaust the limit.
//! * A client that reads nothing of its reply for a minute is disconnected (rule S19).
//! * The number of open connections is limited; further ones wait in the kernel's backlog. A client
//!   that has its share of them open is disconnected at once, and the share is smaller the fewer
//!   connections are left, so that a few clients cannot make the others wait.
//! * At shutdown the listener accepts nothing more, lets running requests finish, and closes the
//!   remaining ones at the deadline.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::http::router::Router;
use crate::http::serve::client_connections::{ClientConnections, CountedConnection};
use crate::http::serve::connection::ConnectionServer;
use crate::http::serve::tls::{BadTlsFile, ListenerCertificate};

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

/// Fails if a listener with these settings cannot start, whatever its address.
pub fn check(settings: &ListenerSettings) -> Result<(), ListenError> {
    settings.certificate().map(drop)
}

impl ListenerSettings {
    fn certificate(&self) -> Result<Option<ListenerCertificate>, ListenError> {
        let files = self.tls.as_ref();
        let read = files.map(|(cert, key)| ListenerCertificate::read(cert, key));
        Ok(read.transpose()?)
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
        let tls = settings.certificate()?.map(Arc::new);
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
        let (closing, _) = watch::channel(());
        let cut = CancellationToken::new();
        if let Some(tls) = &self.tls {
            tokio::spawn(Arc::clone(tls).reload_changes(stop.clone()));
        }
        let timeout_of_headers = self.settings.header_timeout;
        let server = ConnectionServer::new(router.into(), self.tls.clone(), timeout_of_headers);
        let server = Arc::new(server);

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
            let is_shared =
                self.settings.max_connections_per_client < self.settings.max_connections;
            let free = if is_shared { connections.available_permits() } else { usize::MAX };
            let Some(counted) = clients.admit(peer.ip(), free) else { continue };
            let (server, closing) = (Arc::clone(&server), closing.subscribe());
            let cut = cut.clone();
            tokio::spawn(async move {
                let _permits: (OwnedSemaphorePermit, CountedConnection) = (permit, counted);
                tokio::select! {
                    () = cut.cancelled() => {}
                    () = server.serve(stream, peer, closing) => {}
                }
            });
        }

        drop(self.socket); // new connections are refused rather than left in the backlog
        closing.send_replace(());
        if timeout(self.settings.drain, closing.closed()).await.is_err() {
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
