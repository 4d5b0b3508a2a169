//! Claims: how a job belongs to one node for a while.
//!
//! A job is claimed by an update that applies only while nobody else holds it, and that gives it a
//! token of its own. Renewing a claim and recording a result name the token, so that they change
//! nothing once the claim has expired and somebody else has claimed the job.

/// What tells one claim of a job from every other claim of it, on any node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ClaimToken(pub i64);

impl ClaimToken {
    /// The token of a job that nobody has claimed.
    pub const NONE: ClaimToken = ClaimToken(0);
}

/// A place in a queue of due jobs, which is ordered by when they became due: a search for jobs
/// can go on behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct QueuePosition {
    /// When the job at this place became due, in microseconds since 1970.
    pub due_at: i64,
    /// The number of that job.
    pub number: i64,
    /// The cell of the job, in a store with several.
    pub cell: CellPosition,
}

/// The progress of a search through the cells of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct CellPosition {
    /// The cell that is searched.
    pub current: u16,
    /// The number of cells that are searched after it; `None` before the search has begun.
    pub remaining: Option<u16>,
}

impl QueuePosition {
    /// Before the first job.
    pub const START: QueuePosition = QueuePosition {
        due_at: i64::MIN,
        number: i64::MIN,
        cell: CellPosition { current: 0, remaining: None },
    };
}
