//! The clients of streams. Each reads no more than it must, because its work is done on the same
//! machine as that which is measured.

use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::AnyError;

/// The longest that all clients are waited for.
const PATIENCE: Duration = Duration::from_secs(120);
/// Connections that are opened at the same time.
const OPENED_TOGETHER: usize = 64;

/// Open connections.
pub(crate) struct Clients {
    open: Vec<TcpStream>,
    event_bytes: usize,
}

impl Clients {
    /// Opens streams with this request, and waits until each has begun.
    pub(crate) async fn open(many: usize, url: &str, request: &str) -> Result<Clients, AnyError> {
        let address = url.trim_start_matches("http://");
        let opening = (0..many).map(|_| async move {
            let mut stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            stream.write_all(request.as_bytes()).await?;
            // The headers, and the event with the newest entries.
            read_until(&mut stream, b"marker-of-entry-").await?;
            Ok::<_, AnyError>(stream)
        });
        let mut opening = futures_util::stream::iter(opening).buffer_unordered(OPENED_TOGETHER);
        let mut open = Vec::with_capacity(many);
        while let Some(stream) = timeout(PATIENCE, opening.next()).await? {
            open.push(stream?);
        }
        Ok(Clients { open, event_bytes: 0 })
    }

    /// Waits until every client has received `marker`. Returns when the first and the last have,
    /// counted from `begun`.
    pub(crate) async fn receive(
        &mut self,
        marker: &str,
        begun: Instant,
    ) -> Result<(Duration, Duration), AnyError> {
        let reading = self.open.iter_mut().map(|stream| read_until(stream, marker.as_bytes()));
        let mut reading: FuturesUnordered<_> = reading.collect();
        let (mut first, mut last) = (None, Duration::ZERO);
        while let Some(read) = timeout(PATIENCE, reading.next()).await? {
            self.event_bytes = self.event_bytes.max(read?);
            last = begun.elapsed();
            first.get_or_insert(last);
        }
        Ok((first.unwrap_or_default(), last))
    }

    /// The most bytes that an entry took.
    pub(crate) fn event_bytes(&self) -> usize {
        self.event_bytes
    }
}

/// Reads until `marker` has been received, and returns how many bytes that took.
async fn read_until(stream: &mut TcpStream, marker: &[u8]) -> Result<usize, AnyError> {
    let (mut buffer, mut kept, mut total) = ([0; 4_096], 0, 0);
    loop {
        let read = stream.read(&mut buffer[kept..]).await?;
        if read == 0 {
            return Err("a stream ended".into());
        }
        total += read;
        let held = kept + read;
        if buffer[..held].windows(marker.len()).any(|piece| piece == marker) {
            return Ok(total);
        }
        // The marker may have begun at the end of the buffer.
        kept = held.min(marker.len() - 1);
        buffer.copy_within(held - kept..held, 0);
    }
}
