//! A TCP proxy whose connections can be delayed, held up and cut.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::sleep;
use tokio_util::sync::{CancellationToken, DropGuard};

/// The condition of the network between two programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    /// Everything passes at once.
    Open,
    /// Everything passes after this time.
    Slow(Duration),
    /// Nothing passes, and no connection ends.
    Stalled,
    /// Connections end, and new ones are closed at once.
    Cut,
}

/// A proxy to one address; it ends when dropped.
pub(crate) struct TcpProxy {
    address: SocketAddr,
    condition: watch::Sender<Condition>,
    _stop: DropGuard,
}

impl TcpProxy {
    /// Starts a proxy to `target`, a host and a port.
    pub(crate) async fn start(target: String) -> TcpProxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let condition = watch::Sender::new(Condition::Open);
        let (stop, current) = (CancellationToken::new(), condition.subscribe());
        let stopped = stop.clone();
        tokio::spawn(stopped.run_until_cancelled_owned(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(connect(client, target.clone(), current.clone()));
            }
        }));
        TcpProxy { address, condition, _stop: stop.drop_guard() }
    }

    /// Where the proxy listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Changes the condition for all connections.
    pub(crate) fn set(&self, condition: Condition) {
        self.condition.send_replace(condition);
    }
}

async fn connect(client: TcpStream, target: String, mut condition: watch::Receiver<Condition>) {
    if *condition.borrow() == Condition::Cut {
        return;
    }
    let Ok(server) = TcpStream::connect(target).await else { return };
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let (there, back) = (condition.clone(), condition.clone());
    tokio::select! {
        () = async {
            tokio::join!(pass(from_client, to_server, there), pass(from_server, to_client, back));
        } => {}
        _ = condition.wait_for(|condition| *condition == Condition::Cut) => {}
    }
}

async fn pass(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut condition: watch::Receiver<Condition>,
) {
    let mut buffer = vec![0; 16 << 10];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        let delay = match *condition.borrow() {
            Condition::Slow(delay) => delay,
            _ => Duration::ZERO,
        };
        sleep(delay).await;
        if condition.wait_for(|condition| *condition != Condition::Stalled).await.is_err()
            || to.write_all(&buffer[..length]).await.is_err()
        {
            return;
        }
    }
    to.shutdown().await.ok();
}
