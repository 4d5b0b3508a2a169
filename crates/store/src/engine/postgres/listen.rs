//! The connection that listens: a commit on one node wakes the workers of all nodes.
//!
//! The connection is not part of the pool, which drops notifications from the server. A broken
//! connection is opened again; until then workers find their work by polling.
//!
//! The connection also holds this node's part in the lock of the schema (`schema_lock.rs`), which
//! lasts as long as the node runs.

use crate::engine::error::store_error;
use std::error::Error;
use std::future::poll_fn;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::oneshot;
use tokio_postgres::{AsyncMessage, Client, Config, Connection, NoTls};
use tracing::warn;

use super::schema_lock;
use super::tls::Tls;
use crate::engine::tx::Wake;
use feedgate_core::store::{StoreError, WakeSignals};

/// The delay before connecting again.
const AGAIN: Duration = Duration::from_secs(2);

/// Tells the opening store whether this node may use the database.
pub(super) type Joined = oneshot::Sender<Result<(), StoreError>>;

/// Listens for as long as the store is open to what is committed in `schemas`.
pub(super) async fn listen(
    config: Config,
    tls: Option<Tls>,
    schemas: Vec<String>,
    wake_signals: WakeSignals,
    joined: Joined,
) {
    let mut joined = Some(joined);
    loop {
        let ended = match tls.clone() {
            Some(tls) => match config.connect(tls).await {
                Ok((client, connection)) => {
                    hear(&client, connection, (&schemas, &wake_signals), &mut joined).await
                }
                Err(err) => Err(store_error(err)),
            },
            None => match config.connect(NoTls).await {
                Ok((client, connection)) => {
                    hear(&client, connection, (&schemas, &wake_signals), &mut joined).await
                }
                Err(err) => Err(store_error(err)),
            },
        };
        if let Err(err) = ended {
            warn!(
                error = &err as &dyn Error,
                "the connection for notifications was lost; reconnecting"
            );
        }
        // Without this connection, the node works more slowly.
        joined.take().map(|joined| joined.send(Ok(())));
        tokio::time::sleep(AGAIN).await;
    }
}

/// Reads messages from the server until the connection ends.
async fn hear<S, T>(
    client: &Client,
    mut connection: Connection<S, T>,
    (schemas, wake_signals): (&[String], &WakeSignals),
    joined: &mut Option<Joined>,
) -> Result<(), StoreError>
where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    let begin = async {
        let is_free = schema_lock::try_share(client).await?;
        let reply = if is_free { Ok(()) } else { Err(StoreError::BeingCopied) };
        joined.take().map(|joined| joined.send(reply));
        if !is_free {
            return Err(StoreError::BeingCopied);
        }
        client.batch_execute("listen feedgate").await.map_err(store_error)?;
        // Notifications that were sent before this connection listened are not repeated.
        Wake::ALL.into_iter().for_each(|whom| whom.notify(wake_signals));
        // The connection ends when its client does.
        std::future::pending::<Result<(), StoreError>>().await
    };
    let hear = async {
        while let Some(message) = poll_fn(|cx| connection.poll_message(cx)).await {
            let AsyncMessage::Notification(told) = message.map_err(store_error)? else { continue };
            let Some((schema, word)) = told.payload().split_once(' ') else { continue };
            if schemas.iter().any(|ours| ours == schema) {
                let whom = Wake::ALL.into_iter().find(|whom| whom.as_str() == word);
                whom.into_iter().for_each(|whom| whom.notify(wake_signals));
            }
        }
        Ok(())
    };
    tokio::select! {
        ended = begin => ended,
        ended = hear => ended,
    }
}
