//! Reads a response body, with limits on its length, pauses, speed and time, into memory that is
//! reserved first.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::Response;
use tokio::time::{Instant, timeout_at};

use super::FetchError;
use super::failure;
use crate::document_budget::{DocumentBudget, Reservation, SMALL_BODY_BYTES, Share};

/// The minimum speed of a body, in bytes per second (rule P42).
const SLOWEST_BYTES_PER_S: u128 = 1_000;

/// The limits of reading a body.
#[derive(Clone, Copy, Debug)]
pub(super) struct BodyLimits {
    /// The maximum length on the wire, in bytes.
    pub(super) bytes: u64,
    /// The maximum pause between two pieces.
    pub(super) pause: Duration,
    /// The time after which the minimum speed applies.
    pub(super) grace: Duration,
    /// The time at which the body must be complete, and the timeout that ends then.
    pub(super) deadline: (Instant, Duration),
}

/// The memory for bodies, and how long to wait for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct BodyMemory<'b> {
    pub(super) documents: &'b DocumentBudget,
    pub(super) patience: Duration,
}

/// A body as received, and its memory.
#[derive(Debug)]
pub(super) struct WireBody {
    pub(super) bytes: Bytes,
    pub(super) reservation: Reservation,
}

impl BodyMemory<'_> {
    /// Reserves memory for a body of at most `bytes`.
    async fn reserve(self, bytes: u64) -> Result<Reservation, FetchError> {
        let is_small = bytes <= SMALL_BODY_BYTES;
        let share = if is_small { Share::SmallBodies } else { Share::LargeBodies };
        Ok(self.documents.reserve(share, bytes, self.patience).await?)
    }
}

/// Reads the whole body. `wire_bytes` counts the received bytes, even if the body is incomplete. A
/// body whose announced length exceeds the limit is refused unread (rule P43).
pub(super) async fn read(
    mut response: Response,
    limits: BodyLimits,
    memory: BodyMemory<'_>,
    wire_bytes: &mut u64,
) -> Result<WireBody, FetchError> {
    let too_large = FetchError::BodyTooLarge { limit_bytes: limits.bytes };
    let announced = response.content_length().unwrap_or_default();
    if announced > limits.bytes {
        return Err(too_large);
    }
    // A small body may have to be decoded, and its length may be unknown.
    let mut reserved_bytes = announced.max(SMALL_BODY_BYTES);
    let mut reservation = memory.reserve(reserved_bytes).await?;
    let begun = Instant::now();
    // A buffer that grows takes up to three times what is in it.
    let mut body = BytesMut::with_capacity(usize::try_from(announced).unwrap_or_default());
    loop {
        let (until, allowed) = soonest(limits);
        let piece = timeout_at(until, response.chunk());
        let piece = piece.await.map_err(|_| FetchError::TimedOut(allowed))?;
        let Some(piece) =
            piece.map_err(|err| failure::from_client(&err.without_url(), response.url()))?
        else {
            return Ok(WireBody { bytes: body.freeze(), reservation });
        };
        *wire_bytes += piece.len() as u64;
        if body.len() as u64 + piece.len() as u64 > limits.bytes {
            return Err(too_large);
        }
        if (body.len() + piece.len()) as u64 > reserved_bytes {
            reserved_bytes = limits.bytes;
            reservation = memory.reserve(reserved_bytes).await?;
            let room = reserved_bytes - body.len() as u64;
            body.reserve(usize::try_from(room).unwrap_or_default());
        }
        body.extend_from_slice(&piece);
        let took = begun.elapsed();
        if took > limits.grace
            && body.len() as u128 * 1_000 < SLOWEST_BYTES_PER_S * took.as_millis()
        {
            return Err(FetchError::TimedOut(took));
        }
    }
}

fn soonest(limits: BodyLimits) -> (Instant, Duration) {
    let pause = Instant::now() + limits.pause;
    if pause < limits.deadline.0 { (pause, limits.pause) } else { limits.deadline }
}

/// Returns the first `limit_bytes` of the body, or as many as arrive before `deadline`. The rest is
/// not read, and the connection is closed.
pub(super) async fn read_start(
    response: &mut Response,
    limit_bytes: usize,
    deadline: Instant,
) -> Bytes {
    let mut body = BytesMut::new();
    while let Ok(Ok(Some(piece))) = timeout_at(deadline, response.chunk()).await {
        let room = limit_bytes - body.len();
        body.extend_from_slice(&piece[..piece.len().min(room)]);
        if body.len() == limit_bytes {
            break;
        }
    }
    body.freeze()
}
