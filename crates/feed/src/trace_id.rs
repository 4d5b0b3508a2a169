//! Trace ids, which associate a value with its location in the document.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::num::NonZeroU32;

/// Associates a value of a feed with its location in the document. Trace ids are set only in
/// explanations.
///
/// All trace ids compare as equal, so that two values that differ in nothing else are equal. A
/// trace id stays with its value whatever the passes do to lists.
#[derive(Clone, Copy, Default)]
pub struct TraceId(Option<NonZeroU32>);

impl TraceId {
    /// Creates the id with this number, counted from 1.
    pub fn numbered(number: usize) -> TraceId {
        TraceId(u32::try_from(number).ok().and_then(NonZeroU32::new))
    }

    /// Returns the number, if there is one.
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
