//! What tells an HTML page from another page that stands in for it.

use super::{comparable, digest};
use crate::parse::decode_text;
use crate::parse::html::ParsedHtml;

/// What identifies an HTML page among those that its address may show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageIdentity {
    title: String,
    /// The address that the page prefers for itself, as written.
    canonical: Option<String>,
    asks_for_password: bool,
    /// The digest of the significant content.
    digest: String,
}

impl PageIdentity {
    /// Reads what identifies the page with these bytes and this `Content-Type`.
    pub fn read(bytes: &[u8], content_type: Option<&str>) -> PageIdentity {
        let page = ParsedHtml::read(&decode_text(bytes, content_type));
        let titles = page.named("title").into_iter().map(|tag| tag.text());
        let links = page.named("link").into_iter();
        let mut canonical = links.filter(|tag| tag.words("rel").any(|rel| rel == "canonical"));
        let is_password =
            |kind: Option<&str>| kind.is_some_and(|kind| kind.eq_ignore_ascii_case("password"));
        PageIdentity {
            title: titles.into_iter().find(|title| !title.is_empty()).unwrap_or_default(),
            canonical: canonical.find_map(|tag| tag.attr("href").map(str::to_owned)),
            asks_for_password: page.named("input").iter().any(|tag| is_password(tag.attr("type"))),
            digest: digest(comparable(page.root()).as_bytes()),
        }
    }

    /// Returns whether the page has a field for a password, as pages to sign in have.
    pub fn asks_for_password(&self) -> bool {
        self.asks_for_password
    }

    /// Returns whether both are versions of one page: they have the same title, or prefer the same address.
    pub fn is_same_page(&self, other: &PageIdentity) -> bool {
        let has_same_title = !self.title.is_empty() && self.title == other.title;
        has_same_title || (self.canonical.is_some() && self.canonical == other.canonical)
    }

    /// Returns whether both have the same significant content.
    pub fn has_same_content(&self, other: &PageIdentity) -> bool {
        self.digest == other.digest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(html: &str) -> PageIdentity {
        PageIdentity::read(html.as_bytes(), Some("text/html"))
    }

    #[test]
    fn a_page_is_known_by_its_title_or_the_address_that_it_prefers() {
        let canonical = "<link rel='canonical' href='https://tides.test/ebb'>";
        let before = page(&format!("<!doctype html><title>Ebb</title>{canonical}<p>Low"));
        #[rustfmt::skip]
        let cases = [
            ("the same title",          "<title> Ebb </title><p>High".to_owned(),                true),
            ("the same address",        format!("<title>Ebb and flood</title>{canonical}<p>High"), true),
            ("neither",                 "<title>Maintenance</title><p>Soon".to_owned(),          false),
            ("nothing",                 "<p>Low".to_owned(),                                     false),
        ];
        for (why, html, want) in cases {
            assert_eq!(page(&html).is_same_page(&before), want, "{why}");
        }
        let script = "<script type='application/ld+json'>{}</script>";
        let marked_up =
            page(&format!("<!doctype html><title>Ebb</title>{canonical}{script}<p>Low"));
        assert!(marked_up.has_same_content(&before), "what is marked up is not on the page");
        assert!(!page("<title>Ebb</title><p>High").has_same_content(&before));
    }

    #[test]
    fn a_field_for_a_password_shows_a_login_page() {
        assert!(page("<form><input name=p type=PassWord></form>").asks_for_password());
        assert!(!page("<form><input type=search></form>").asks_for_password());
    }
}
