//! The memory for documents from outside: one budget in bytes, and a limit on concurrent parsing.
//!
//! Whatever arrives from other servers and from clients is counted here from its first byte until
//! its result is stored: bodies, decoded documents, and what parsing and rendering them takes, and what
//! copying entries to collections and tracks takes. A
//! document that does not fit waits, for a bounded time; then its caller postpones the work or
//! reports [`GatewayBusy`]. Invariants:
//!
//! * The budget is divided into [`Share`]s, so that large documents never displace small ones, nor
//!   bodies that arrive slowly those that are being parsed. Reservations of one document are made
//!   in the order of the shares, at most one in each, so no two documents wait for each other.
//! * What waits for a parser holds its memory already, and a parser waits for nothing.
//! * No more documents are parsed at the same time than there are processors, and only half of the
//!   parsers take large documents.
//! * What works in a [`half`](DocumentBudget::half) of the budget waits for its part of that first, so that it
//!   never stands in the way of the rest.

mod half;
mod request_bodies;

use std::error::Error;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::timeout;
use tracing::error;

use feedgate_feed::parse::{max_memory, memory_bound};

use half::BudgetHalf;
use request_bodies::AnonymousBodies;

pub use request_bodies::BodyOwner;
pub(crate) use request_bodies::{RequestBodyMemory, UNRESERVED_BODY_BYTES};

/// The maximum length of a small body, on the wire and decoded. Most feeds have a tenth of it.
pub const SMALL_BODY_BYTES: u64 = 1024 * 1024;
/// The most memory that a small document takes.
const SMALL_DOCUMENT_BYTES: u64 = 8 * 1024 * 1024;
/// The smallest budget: an eighth of it is enough for a small document.
pub const SMALLEST_BUDGET_BYTES: u64 = 8 * SMALL_DOCUMENT_BYTES;
/// The unit in which semaphores count.
const UNIT_BYTES: u64 = 1024;
/// The copies of stored documents that work on them takes: as they were read, with their source, with the
/// text that is compared, and as they are stored again.
const STORED_COPIES: u64 = 4;
/// The time after which work may be tried again that found no memory.
const RETRY_IN: Duration = Duration::from_secs(15);

/// A part of the budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// Bodies of requests to this gateway: an eighth.
    Requests,
    /// Bodies of responses, up to [`SMALL_BODY_BYTES`]: an eighth.
    SmallBodies,
    /// Longer bodies of responses: an eighth.
    LargeBodies,
    /// Documents that are parsed, or whose result is being stored, and take little memory: an
    /// eighth.
    SmallDocuments,
    /// All other documents: half.
    LargeDocuments,
}

impl Share {
    const ALL: [Share; 5] = [
        Share::Requests,
        Share::SmallBodies,
        Share::LargeBodies,
        Share::SmallDocuments,
        Share::LargeDocuments,
    ];

    /// The number of eighths of the budget.
    fn eighths(self) -> u64 {
        match self {
            Share::LargeDocuments => 4,
            Share::Requests | Share::SmallBodies | Share::LargeBodies | Share::SmallDocuments => 1,
        }
    }
}

/// There was no memory for a document in time. Nothing is wrong with the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("feedgate is busy with other documents; try again in {} s", .retry_in.as_secs())]
pub struct GatewayBusy {
    /// After how long it may be tried again.
    pub retry_in: Duration,
}

impl GatewayBusy {
    /// The usual time after which work may be tried again.
    pub fn for_now() -> GatewayBusy {
        GatewayBusy { retry_in: RETRY_IN }
    }
}

/// The use of the budget, for `/metrics`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BudgetUsage {
    /// The bytes that are reserved.
    pub bytes: u64,
    /// The size of the budget.
    pub limit_bytes: u64,
    /// The documents that wait for memory or for a parser.
    pub waiting: usize,
    /// The documents that are being parsed.
    pub parsing: usize,
}

/// The budget. Clones share it.
#[derive(Clone, Debug)]
pub struct DocumentBudget {
    pools: Arc<[Pool; 5]>,
    anonymous_bodies: AnonymousBodies,
    parsers: Parsers,
    waiting: Arc<AtomicUsize>,
    /// The half that work with this budget may have, if it may not have all.
    half: Option<Arc<BudgetHalf>>,
}

/// The memory of one share.
#[derive(Debug)]
struct Pool {
    units: Arc<Semaphore>,
    capacity: u32,
}

impl Pool {
    fn new(capacity: u32) -> Pool {
        Pool { units: Arc::new(Semaphore::new(capacity as usize)), capacity }
    }

    /// Waits for units: for all of them, if that is less.
    async fn acquire(&self, units: u32) -> Result<OwnedSemaphorePermit, AcquireError> {
        Arc::clone(&self.units).acquire_many_owned(units.min(self.capacity)).await
    }
}

/// Who may parse.
#[derive(Clone, Debug)]
struct Parsers {
    all: Arc<Semaphore>,
    count: usize,
    for_large: Arc<Semaphore>,
    large_count: usize,
}

impl Parsers {
    fn new(count: usize) -> Parsers {
        let all = Arc::new(Semaphore::new(count));
        let large_count = (count / 2).max(1);
        Parsers { all, count, for_large: Arc::new(Semaphore::new(large_count)), large_count }
    }
}

/// Memory that is reserved until this is dropped.
#[derive(Debug)]
pub struct Reservation {
    units: OwnedSemaphorePermit,
    /// The part of a half that they are.
    of_half: Option<OwnedSemaphorePermit>,
}

impl Reservation {
    /// Returns what exceeds `bytes` to the budget.
    pub fn shrink_to(&mut self, bytes: u64) {
        for permits in [Some(&mut self.units), self.of_half.as_mut()].into_iter().flatten() {
            let excess = permits.num_permits().saturating_sub(units(bytes) as usize);
            drop(permits.split(excess));
        }
    }
}

/// The memory of one document, from decoding until its result is stored. Work on the document runs
/// in [`run_blocking`](Self::run_blocking).
#[derive(Clone, Debug)]
pub struct DocumentMemory {
    /// `None` for documents so small that their number bounds their memory.
    reservation: Option<Arc<Reservation>>,
    is_large: bool,
    budget: DocumentBudget,
}

impl DocumentBudget {
    /// Creates a budget of `bytes`, with `parsers` documents parsed at the same time.
    pub fn new(bytes: u64, parsers: usize) -> DocumentBudget {
        let pools = Share::ALL.map(|share| Pool::new(units(bytes / 8 * share.eighths())));
        let parsers = Parsers::new(parsers.max(1));
        let anonymous_bodies = AnonymousBodies::new(pools[Share::Requests as usize].capacity);
        DocumentBudget {
            pools: Arc::new(pools),
            anonymous_bodies,
            parsers,
            waiting: Arc::default(),
            half: None,
        }
    }

    /// Returns the present use of the budget.
    pub fn usage(&self) -> BudgetUsage {
        let (mut used, mut limit) = (0, 0);
        for pool in self.pools.iter() {
            let free = pool.units.available_permits() as u64;
            used += u64::from(pool.capacity).saturating_sub(free);
            limit += u64::from(pool.capacity);
        }
        BudgetUsage {
            bytes: used * UNIT_BYTES,
            limit_bytes: limit * UNIT_BYTES,
            waiting: self.waiting.load(Ordering::Relaxed),
            parsing: self.parsers.count.saturating_sub(self.parsers.all.available_permits()),
        }
    }

    /// Returns the number of bytes of a share.
    pub fn capacity_bytes(&self, share: Share) -> u64 {
        u64::from(self.pools[share as usize].capacity) * UNIT_BYTES
    }

    /// Reserves `bytes` of a share, and waits for them no longer than `patience`. What exceeds the
    /// share takes all of it, alone.
    pub async fn reserve(
        &self,
        share: Share,
        bytes: u64,
        patience: Duration,
    ) -> Result<Reservation, GatewayBusy> {
        let units = units(bytes).min(self.pools[share as usize].capacity);
        self.acquire(share, units, patience).await
    }

    /// Reserves what `held` lacks of `bytes` of its share, as [`reserve`](Self::reserve) does.
    async fn extend(
        &self,
        share: Share,
        held: &mut Reservation,
        bytes: u64,
        patience: Duration,
    ) -> Result<(), GatewayBusy> {
        let wanted = units(bytes).min(self.pools[share as usize].capacity);
        let has = u32::try_from(held.units.num_permits()).unwrap_or(u32::MAX);
        let lacking = self.acquire(share, wanted.saturating_sub(has), patience).await?;
        held.units.merge(lacking.units);
        if let (Some(held), Some(lacking)) = (&mut held.of_half, lacking.of_half) {
            held.merge(lacking);
        }
        Ok(())
    }

    async fn acquire(
        &self,
        share: Share,
        wanted: u32,
        patience: Duration,
    ) -> Result<Reservation, GatewayBusy> {
        let mut acquiring = pin!(self.wait_for(share, wanted));
        let reserved = match acquiring.as_mut().now_or_never() {
            Some(reserved) => Ok(reserved),
            None => {
                let _waiting = Waiting::new(&self.waiting);
                timeout(patience, acquiring).await
            }
        };
        // Waiting fails only if a semaphore is closed, which nothing does.
        reserved.ok().and_then(Result::ok).ok_or_else(GatewayBusy::for_now)
    }

    async fn wait_for(&self, share: Share, wanted: u32) -> Result<Reservation, AcquireError> {
        let of_half = match &self.half {
            Some(half) => Some(half.acquire(share, wanted).await?),
            None => None,
        };
        let units = self.pools[share as usize].acquire(wanted).await?;
        Ok(Reservation { units, of_half })
    }

    /// Reserves memory for parsing a document and storing its result.
    pub async fn admit(
        &self,
        document: &[u8],
        patience: Duration,
    ) -> Result<DocumentMemory, GatewayBusy> {
        let bytes = document_bytes(document);
        let is_large = bytes > SMALL_DOCUMENT_BYTES;
        let share = if is_large { Share::LargeDocuments } else { Share::SmallDocuments };
        let reservation = self.reserve(share, bytes, patience).await?;
        Ok(DocumentMemory {
            reservation: Some(Arc::new(reservation)),
            is_large,
            budget: self.clone(),
        })
    }

    /// Reserves memory for work on stored documents of `bytes` together.
    pub async fn admit_stored(
        &self,
        bytes: u64,
        patience: Duration,
    ) -> Result<Reservation, GatewayBusy> {
        let bytes = bytes.saturating_mul(STORED_COPIES);
        let is_large = bytes > SMALL_DOCUMENT_BYTES;
        let share = if is_large { Share::LargeDocuments } else { Share::SmallDocuments };
        self.reserve(share, bytes, patience).await
    }

    /// Reserves memory for a document that `decode` produces, whose length is known only to be at
    /// most `most_bytes`, and decodes it.
    pub async fn admit_decoded<T: AsRef<[u8]> + Send + 'static, E: Send + 'static>(
        &self,
        most_bytes: u64,
        patience: Duration,
        decode: impl FnOnce() -> Result<T, E> + Send + 'static,
    ) -> Result<Option<Result<(T, DocumentMemory), E>>, GatewayBusy> {
        let most_bytes = usize::try_from(most_bytes).unwrap_or(usize::MAX >> 8);
        let most = (2 * most_bytes + max_memory(most_bytes)) as u64;
        let mut reservation = self.reserve(Share::LargeDocuments, most, patience).await?;
        let memory = DocumentMemory { reservation: None, is_large: true, budget: self.clone() };
        let decoded = memory.run_blocking(move || {
            let decoded = decode();
            let bytes = decoded.as_ref().map_or(0, |decoded| document_bytes(decoded.as_ref()));
            reservation.shrink_to(bytes);
            (decoded, reservation)
        });
        Ok(decoded.await.map(|(decoded, reservation)| {
            let reservation = Some(Arc::new(reservation));
            decoded.map(|decoded| (decoded, DocumentMemory { reservation, ..memory }))
        }))
    }

    /// Runs `work` on a document of at most [`SMALL_BODY_BYTES`], which the reservation of its
    /// body covers. `None` if it panicked.
    pub async fn run_small<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let memory = DocumentMemory { reservation: None, is_large: false, budget: self.clone() };
        memory.run_blocking(work).await
    }
}

impl DocumentMemory {
    /// Returns the memory of a document that takes none.
    #[cfg(test)]
    pub(crate) fn for_tests() -> DocumentMemory {
        let budget = DocumentBudget::new(SMALLEST_BUDGET_BYTES, 1);
        DocumentMemory { reservation: None, is_large: false, budget }
    }

    /// Reserves memory for another document that is read beside this one. Nothing is waited for, because what
    /// this one holds may be what is waited for.
    pub async fn admit_beside(&self, document: &[u8]) -> Result<DocumentMemory, GatewayBusy> {
        self.budget.admit(document, Duration::ZERO).await
    }

    /// Returns whether the document takes much memory, and so much time.
    pub fn is_large(&self) -> bool {
        self.is_large
    }

    /// Runs `work` on a blocking thread when a parser is free, so that it neither delays other
    /// tasks nor ends the process if it panics on somebody's document (rule S47). `None` if it
    /// panicked. The memory stays reserved until `work` ends, even if the caller is cancelled.
    pub async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let parsers = &self.budget.parsers;
        let waiting = Waiting::new(&self.budget.waiting);
        let of_half = match &self.budget.half {
            Some(half) if self.is_large => half.acquire_parser().await,
            Some(_) | None => None,
        };
        let for_large = match self.is_large {
            true => Arc::clone(&parsers.for_large).acquire_owned().await.ok(),
            false => None,
        };
        let parser = Arc::clone(&parsers.all).acquire_owned().await.ok();
        drop(waiting);
        let memory = self.reservation.clone();
        let work = move || {
            let result = work();
            drop((parser, for_large, of_half, memory));
            result
        };
        if self.is_large {
            return run_on_own_thread(work).await;
        }
        let result = tokio::task::spawn_blocking(work).await;
        result
            .inspect_err(|err| error!(error = err as &dyn Error, "reading a document panicked"))
            .ok()
    }
}

/// Runs `work` on a thread that ends afterwards: the allocator keeps freed memory for the thread
/// that had it, and threads of the blocking pool stay.
async fn run_on_own_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (result, received) = oneshot::channel();
    let work = move || {
        // Nobody receives the result if the caller was cancelled.
        let _ = result.send(work());
    };
    if let Err(err) = thread::Builder::new().name("large document".to_owned()).spawn(work) {
        error!(error = &err as &dyn Error, "no thread for a large document");
    }
    // After a panic, which the thread has reported, there is no result.
    received.await.ok()
}

/// Returns the memory for a document: its bytes twice, as received and as stored, and what parsing
/// takes.
fn document_bytes(document: &[u8]) -> u64 {
    (2 * document.len() + memory_bound(document)) as u64
}

/// Returns the number of units for `bytes`, at least one.
fn units(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX >> 1).max(1)
}

/// One that waits, counted until dropped.
struct Waiting<'b>(&'b AtomicUsize);

impl<'b> Waiting<'b> {
    fn new(count: &'b AtomicUsize) -> Waiting<'b> {
        count.fetch_add(1, Ordering::Relaxed);
        Waiting(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
