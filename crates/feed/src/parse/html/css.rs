//! CSS selectors with a bounded number of steps.
//!
//! Both page and selector are untrusted, and some pairs take quadratic time or worse: `a ~ b`
//! visits all siblings before each element, and `[a*=x]` searches the whole attribute. So every
//! move between elements and every test of an element counts as a step, and a selection that runs
//! out of steps fails.

use std::cell::Cell;

use cssparser::Parser as Tokens;
use html5ever::Namespace;
use scraper::ElementRef;
use scraper::selector::{CssLocalName, CssString, NonTSPseudoClass, Parser, PseudoElement, Simple};
use selectors::attr::{AttrSelectorOperation, CaseSensitivity, NamespaceConstraint};
use selectors::bloom::BloomFilter;
use selectors::context::{MatchingForInvalidation, NeedsSelectorFlags, QuirksMode, SelectorCaches};
use selectors::matching::{ElementSelectorFlags, MatchingContext, MatchingMode, matches_selector};
use selectors::parser::{ParseRelative, SelectorList};
use selectors::{Element, OpaqueElement};

use super::{HtmlElement, ParsedHtml};

/// The maximum number of steps on one page: well under a second, and a hundred for each element of
/// a very long page.
const STEPS: u64 = 8_000_000;

/// The bytes of an attribute that are searched in one step.
const BYTES_PER_STEP: usize = 16;

/// A parsed list of selectors.
#[derive(Debug)]
pub(crate) struct Css(SelectorList<Simple>);

impl Css {
    /// Parses a list of selectors; `None` if it is not one. Pseudo-elements, and pseudo-classes
    /// that depend on a user (`:hover`), are not supported.
    pub(crate) fn parse(text: &str) -> Option<Css> {
        let list = SelectorList::parse(&Parser, &mut Tokens::new(text), ParseRelative::No);
        list.ok().map(Css)
    }

    /// Returns the selected elements in document order, except those inside other selected
    /// elements; `None` if selecting takes too many steps.
    pub(crate) fn select<'p>(&self, page: &'p ParsedHtml) -> Option<Vec<HtmlElement<'p>>> {
        let left = Cell::new(STEPS);
        let mut caches = SelectorCaches::default();
        let mut found = Vec::new();
        let mut next = page.root().map(|root| *root.0);
        while let Some(node) = next.filter(|_| left.get() > 0) {
            let element = ElementRef::wrap(node);
            let is_hit = element.is_some_and(|element| self.hits(element, &left, &mut caches));
            if let Some(element) = element.filter(|_| is_hit) {
                found.push(HtmlElement(element));
            }
            let inside = if is_hit { None } else { node.first_child() };
            next = inside.or_else(|| {
                let mut around = std::iter::once(node).chain(node.ancestors());
                around.find_map(|around| around.next_sibling())
            });
        }
        (left.get() > 0).then_some(found)
    }

    fn hits(&self, element: ElementRef<'_>, left: &Cell<u64>, caches: &mut SelectorCaches) -> bool {
        let mut context = MatchingContext::new(
            MatchingMode::Normal,
            None,
            caches,
            QuirksMode::NoQuirks,
            NeedsSelectorFlags::No,
            MatchingForInvalidation::No,
        );
        let counted = Counted { element, left };
        let mut each = self.0.slice().iter();
        each.any(|one| {
            counted.step().is_some() && matches_selector(one, 0, None, &counted, &mut context)
        })
    }
}

/// An element that counts the steps of the selector engine.
#[derive(Clone, Debug)]
struct Counted<'a> {
    element: ElementRef<'a>,
    left: &'a Cell<u64>,
}

impl Counted<'_> {
    /// Takes one step; `None` if none is left.
    fn step(&self) -> Option<()> {
        self.steps(1)
    }

    /// Takes this many steps; `None` if not enough are left.
    fn steps(&self, taken: usize) -> Option<()> {
        let left = self.left.get().saturating_sub(taken as u64);
        self.left.set(left);
        (left > 0).then_some(())
    }

    /// Returns the number of steps for testing the attributes. A case-insensitive search compares
    /// anew at each position.
    fn attr_steps(&self, name: &str, operation: &AttrSelectorOperation<&CssString>) -> usize {
        let each = match operation {
            AttrSelectorOperation::WithValue {
                case_sensitivity: CaseSensitivity::AsciiCaseInsensitive,
                value,
                ..
            } => value.as_ref().len().max(1),
            _ => 1,
        };
        let attrs = self.element.value().attrs();
        let steps = attrs.map(|(key, value)| {
            let len = if key == name { value.len() } else { 0 };
            1 + len.saturating_mul(each) / BYTES_PER_STEP
        });
        steps.fold(1, usize::saturating_add)
    }
}

impl Element for Counted<'_> {
    type Impl = Simple;

    fn opaque(&self) -> OpaqueElement {
        self.element.opaque()
    }

    fn parent_element(&self) -> Option<Self> {
        self.step()?;
        let element = self.element.parent_element()?;
        Some(Counted { element, left: self.left })
    }

    fn parent_node_is_shadow_root(&self) -> bool {
        false
    }

    fn containing_shadow_host(&self) -> Option<Self> {
        None
    }

    fn is_pseudo_element(&self) -> bool {
        false
    }

    fn prev_sibling_element(&self) -> Option<Self> {
        self.step()?;
        let element = self.element.prev_sibling_element()?;
        Some(Counted { element, left: self.left })
    }

    fn next_sibling_element(&self) -> Option<Self> {
        self.step()?;
        let element = self.element.next_sibling_element()?;
        Some(Counted { element, left: self.left })
    }

    fn first_element_child(&self) -> Option<Self> {
        self.step()?;
        let element = self.element.first_element_child()?;
        Some(Counted { element, left: self.left })
    }

    fn is_html_element_in_html_document(&self) -> bool {
        self.element.is_html_element_in_html_document()
    }

    fn has_local_name(&self, name: &CssLocalName) -> bool {
        self.step().is_some() && self.element.has_local_name(name)
    }

    fn has_namespace(&self, namespace: &Namespace) -> bool {
        self.element.has_namespace(namespace)
    }

    fn is_same_type(&self, other: &Self) -> bool {
        self.element.is_same_type(&other.element)
    }

    fn attr_matches(
        &self,
        namespace: &NamespaceConstraint<&Namespace>,
        name: &CssLocalName,
        operation: &AttrSelectorOperation<&CssString>,
    ) -> bool {
        let steps = self.attr_steps(&name.0, operation);
        self.steps(steps).is_some() && self.element.attr_matches(namespace, name, operation)
    }

    fn match_non_ts_pseudo_class(
        &self,
        _class: &NonTSPseudoClass,
        _context: &mut MatchingContext<'_, Simple>,
    ) -> bool {
        false
    }

    fn match_pseudo_element(
        &self,
        _element: &PseudoElement,
        _context: &mut MatchingContext<'_, Simple>,
    ) -> bool {
        false
    }

    fn apply_selector_flags(&self, _flags: ElementSelectorFlags) {}

    fn is_link(&self) -> bool {
        self.element.is_link()
    }

    fn is_html_slot_element(&self) -> bool {
        false
    }

    fn has_id(&self, id: &CssLocalName, case: CaseSensitivity) -> bool {
        self.step().is_some() && self.element.has_id(id, case)
    }

    fn has_class(&self, name: &CssLocalName, case: CaseSensitivity) -> bool {
        self.step().is_some() && self.element.has_class(name, case)
    }

    fn has_custom_state(&self, _name: &CssLocalName) -> bool {
        false
    }

    fn imported_part(&self, _name: &CssLocalName) -> Option<CssLocalName> {
        None
    }

    fn is_part(&self, _name: &CssLocalName) -> bool {
        false
    }

    fn is_empty(&self) -> bool {
        let mut nodes = self.element.children();
        nodes.all(|node| {
            self.step().is_some() && !node.value().is_element() && !node.value().is_text()
        })
    }

    fn is_root(&self) -> bool {
        self.step().is_some() && self.element.is_root()
    }

    fn add_element_unique_hashes(&self, _filter: &mut BloomFilter) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_find_elements_in_order_and_each_once() {
        let page = ParsedHtml::read(
            "<ul class=a><li id=1>x<li id=2 class='b c'>y</ul><div><div class=b>z</div></div>",
        );
        #[rustfmt::skip]
        let cases = [
            ("li",                  &["x", "y"][..]),
            (".b",                  &["y", "z"]),
            ("#\\31",               &["x"]),
            ("ul.a > li.c",         &["y"]),
            ("li:first-child, .b",  &["x", "y", "z"]),
            ("div",                 &["z"]),
            ("li:nth-child(2)",     &["y"]),
            ("ul:has(.c) li:not(.c)", &["x"]),
            ("p",                   &[]),
            ("li:empty, :root > *:not(head) > div", &["z"]),
            ("[CLASS*='B' i][class$=c]", &["y"]),
            ("[id='2']",            &["y"]),
        ];
        for (selector, want) in cases {
            let found = Css::parse(selector).unwrap().select(&page).unwrap();
            let texts: Vec<String> = found.into_iter().map(HtmlElement::text).collect();
            assert_eq!(texts, want, "{selector}");
        }
        for none in ["", "p >", "li:hover", "p::before", ":~:text=x", "!/route", "a{}"] {
            assert!(Css::parse(none).is_none(), "{none}");
        }
    }

    #[test]
    fn a_page_and_a_selector_made_for_each_other_are_given_up_on() {
        let page = ParsedHtml::read(&"<i>".repeat(500));
        let deep = Css::parse("u ~ i i i i i i, i:not(i u ~ i)").unwrap().select(&page);
        assert!(deep.is_some(), "what looks bad and is not is done");

        let wide = ParsedHtml::read(&"<p></p>".repeat(30_000));
        for selector in ["u ~ p", "p:has(~ u)"] {
            assert!(Css::parse(selector).unwrap().select(&wide).is_none(), "{selector}");
        }
        let many = format!("{}u", "u,".repeat(250));
        assert!(Css::parse(&many).unwrap().select(&wide).is_none(), "many selectors");

        let long = ParsedHtml::read(&format!("<p a='{}'>", "x".repeat(1_000_000)));
        assert!(Css::parse("[a*=xy], [a*=y i]").unwrap().select(&long).is_some());
        let slow = format!("[a*={}y i]", "x".repeat(200));
        assert!(Css::parse(&slow).unwrap().select(&long).is_none(), "a long attribute");
    }
}
