//! A number that ties a value to the place of the document it came from.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::num::NonZeroU32;

/// Ties a value of a feed to the place of the document it came from. It is set only where
/// a trace is recorded, which is in an explanation.
///
/// It is no part of what a feed says: all ids are equal, so two values that differ in
/// nothing else are equal. It stays with its value whatever the passes do to lists.
#[derive(Clone, Copy, Default)]
pub struct TraceId(Option<NonZeroU32>);

impl TraceId {
    /// The id with this number, counted from 1.
    pub fn numbered(number: usize) -> TraceId {
        TraceId(u32::try_from(number).ok().and_then(NonZeroU32::new))
    }

    /// Its number, if there is one.
    pub fn number(self) -> Option<usize> {
        self.0.and_then(|number| usize::try_from(number.get()).ok())
    }
}

impl PartialEq for TraceId {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for TraceId {}

impl Hash for TraceId {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

impl fmt::Debug for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TraceId")
    }
}
