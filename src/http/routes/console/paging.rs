//! The pages of a list, which is read from one place on.
//!
//! A page says where the next begins. So that one can go back, its address also names the pages before it.

use maud::{Markup, html};
use url::form_urlencoded;

use super::visit::Visit;

/// The most pages before it that the address of a page names. Whoever is further in gets back to the first.
const MOST_BACK: usize = 30;

/// Where a page begins, and those before it.
pub(super) struct Paging {
    /// Where the page begins; empty: at the beginning of the list.
    pub(super) after: String,
    back: Vec<String>,
}

impl Paging {
    /// Reads the place that the address of a page names.
    pub(super) fn read(visit: &Visit) -> Paging {
        let after = visit.form.get_verbatim("after").unwrap_or_default().to_owned();
        let back = visit.form.all("back").map(str::to_owned).collect();
        Paging { after, back }
    }

    /// Returns whether this is the first page.
    pub(super) fn is_first(&self) -> bool {
        self.after.is_empty()
    }

    /// Returns the links to the pages before and behind this one of the list at `section`, which keep the
    /// parameters `kept`.
    pub(super) fn links(
        &self,
        visit: &Visit,
        (section, kept): (&str, &[&str]),
        next: Option<String>,
    ) -> Markup {
        let link = |after: &str, back: &[String]| {
            let mut query = form_urlencoded::Serializer::new(String::new());
            for name in kept.iter().filter(|name| !visit.value(name).is_empty()) {
                query.append_pair(name, visit.value(name));
            }
            if !after.is_empty() {
                query.append_pair("after", after);
                query.extend_pairs(back.iter().map(|place| ("back", place)));
            }
            visit.address(&format!("{section}?{}", query.finish()))
        };
        let behind: Vec<String> = self.back.iter().chain([&self.after]).cloned().collect();
        let behind = &behind[behind.len().saturating_sub(MOST_BACK)..];
        html! {
            nav.pages aria-label="Pages" {
                @if !self.is_first() {
                    @match self.back.split_last() {
                        Some((before, back)) => {
                            a rel="prev" href=(link(before, back)) { "Previous" }
                        }
                        None => a href=(link("", &[])) { "First page" }
                    }
                }
                @if let Some(next) = next { a rel="next" href=(link(&next, behind)) { "Next" } }
            }
        }
    }
}
