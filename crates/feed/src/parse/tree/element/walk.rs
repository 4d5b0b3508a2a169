//! Walks through what lies below an element, without recursion.

use super::super::{Kind, NONE};
use super::El;

/// One step of a [`Walk`].
#[derive(Clone, Copy, Debug)]
pub(in crate::parse::tree) enum Step<'t> {
    Enter(El<'t>),
    Text(&'t str),
    Leave(El<'t>),
}

/// A walk through what lies below an element, without recursion.
#[derive(Debug)]
pub(in crate::parse::tree) struct Walk<'t> {
    top: El<'t>,
    at: u32,
    leaving: bool,
}

impl<'t> Walk<'t> {
    pub(in crate::parse::tree) fn below(top: El<'t>) -> Walk<'t> {
        Walk { top, at: top.node().first, leaving: false }
    }

    /// Goes past what was just entered.
    pub(in crate::parse::tree) fn skip(&mut self, entered: El<'t>) {
        self.at = entered.at;
        self.leaving = true;
    }

    pub(in crate::parse::tree) fn next(&mut self) -> Option<Step<'t>> {
        let tree = self.top.tree;
        if self.at == NONE || self.at == self.top.at {
            return None;
        }
        let node = &tree.nodes[self.at as usize];
        let here = El { tree, at: self.at };
        let onward = |walk: &mut Self| {
            walk.leaving = node.next == NONE;
            walk.at = if walk.leaving { node.parent } else { node.next };
        };
        match &node.kind {
            Kind::Text(text) => {
                onward(self);
                Some(Step::Text(text))
            }
            Kind::Element { .. } if self.leaving => {
                onward(self);
                Some(Step::Leave(here))
            }
            Kind::Element { .. } => {
                self.leaving = node.first == NONE;
                if !self.leaving {
                    self.at = node.first;
                }
                Some(Step::Enter(here))
            }
        }
    }
}
