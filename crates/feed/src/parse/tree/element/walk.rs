//! Traversal of the descendants of an element without recursion.

use super::super::{Kind, NONE};
use super::XmlElement;

/// One step of a [`Walk`].
#[derive(Clone, Copy, Debug)]
pub(in crate::parse::tree) enum WalkStep<'t> {
    Enter(XmlElement<'t>),
    Text(&'t str),
    Leave(XmlElement<'t>),
}

/// A traversal of the descendants of an element without recursion.
#[derive(Debug)]
pub(in crate::parse::tree) struct Walk<'t> {
    top: XmlElement<'t>,
    at: u32,
    leaving: bool,
}

impl<'t> Walk<'t> {
    pub(in crate::parse::tree) fn below(top: XmlElement<'t>) -> Walk<'t> {
        Walk { top, at: top.node().first, leaving: false }
    }

    /// Skips the content of the element that was just entered.
    pub(in crate::parse::tree) fn skip(&mut self, entered: XmlElement<'t>) {
        self.at = entered.at;
        self.leaving = true;
    }

    pub(in crate::parse::tree) fn next(&mut self) -> Option<WalkStep<'t>> {
        let tree = self.top.tree;
        if self.at == NONE || self.at == self.top.at {
            return None;
        }
        let node = &tree.nodes[self.at as usize];
        let here = XmlElement { tree, at: self.at };
        let move_on = |walk: &mut Self| {
            walk.leaving = node.next == NONE;
            walk.at = if walk.leaving { node.parent } else { node.next };
        };
        match &node.kind {
            Kind::Text(text) => {
                move_on(self);
                Some(WalkStep::Text(text))
            }
            Kind::Element { .. } if self.leaving => {
                move_on(self);
                Some(WalkStep::Leave(here))
            }
            Kind::Element { .. } => {
                self.leaving = node.first == NONE;
                if !self.leaving {
                    self.at = node.first;
                }
                Some(WalkStep::Enter(here))
            }
        }
    }
}
