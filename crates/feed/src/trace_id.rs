//! A mark on a value: which place of the document it came from.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::num::NonZeroU32;

/// A number under which a trace knows where a value came from; none where no trace is
/// kept, which is everywhere but in an explanation.
///
/// It is no part of what a feed says: two values that differ in nothing else are equal.
/// It stays with its value through whatever the passes do to lists.
#[derive(Clone, Copy, Default)]
pub struct Mark(Option<NonZeroU32>);

impl Mark {
    /// The mark with this number, counted from 1.
    pub fn numbered(number: usize) -> Mark {
        Mark(u32::try_from(number).ok().and_then(NonZeroU32::new))
    }

    /// Its number, if there is one.
    pub fn number(self) -> Option<usize> {
        self.0.and_then(|number| usize::try_from(number.get()).ok())
    }
}

impl PartialEq for Mark {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Mark {}

impl Hash for Mark {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

impl fmt::Debug for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Mark")
    }
}
