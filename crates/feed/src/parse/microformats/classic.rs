//! The classic microformats before microformats2: hAtom, hCard, adr and geo.
//!
//! Their class names have no prefixes, so each property is searched only in items of its kind.
//! Nothing is implied for classic items.

use super::{HtmlElement, ValueForm};

/// The classic kinds of items, and their names in microformats2.
const KINDS: [(&str, &str); 5] = [
    ("hfeed", "h-feed"),
    ("hentry", "h-entry"),
    ("vcard", "h-card"),
    ("adr", "h-adr"),
    ("geo", "h-geo"),
];

/// The properties: kind of item, class, and form and name in microformats2.
const PROPERTIES: [(&str, &str, ValueForm, &str); 28] = [
    ("hfeed", "author", ValueForm::Text, "author"),
    ("hfeed", "photo", ValueForm::Address, "photo"),
    ("hfeed", "url", ValueForm::Address, "url"),
    ("hentry", "entry-title", ValueForm::Text, "name"),
    ("hentry", "entry-summary", ValueForm::Text, "summary"),
    ("hentry", "entry-content", ValueForm::Markup, "content"),
    ("hentry", "published", ValueForm::Date, "published"),
    ("hentry", "updated", ValueForm::Date, "updated"),
    ("hentry", "author", ValueForm::Text, "author"),
    ("hentry", "category", ValueForm::Text, "category"),
    ("hentry", "geo", ValueForm::Text, "geo"),
    ("hentry", "latitude", ValueForm::Text, "latitude"),
    ("hentry", "longitude", ValueForm::Text, "longitude"),
    ("vcard", "fn", ValueForm::Text, "name"),
    ("vcard", "nickname", ValueForm::Text, "nickname"),
    ("vcard", "org", ValueForm::Text, "org"),
    ("vcard", "url", ValueForm::Address, "url"),
    ("vcard", "email", ValueForm::Address, "email"),
    ("vcard", "photo", ValueForm::Address, "photo"),
    ("vcard", "logo", ValueForm::Address, "logo"),
    ("vcard", "adr", ValueForm::Text, "adr"),
    ("vcard", "geo", ValueForm::Text, "geo"),
    ("adr", "locality", ValueForm::Text, "locality"),
    ("adr", "region", ValueForm::Text, "region"),
    ("adr", "country-name", ValueForm::Text, "country-name"),
    ("adr", "geo", ValueForm::Text, "geo"),
    ("geo", "latitude", ValueForm::Text, "latitude"),
    ("geo", "longitude", ValueForm::Text, "longitude"),
];

/// Returns whether an element is a classic item.
pub(super) fn is_item(tag: HtmlElement<'_>) -> bool {
    tag.words("class").any(|class| KINDS.iter().any(|(kind, _)| *kind == class))
}

/// Returns whether an element is a classic item of the microformats2 kind `kind`.
pub(super) fn is(tag: HtmlElement<'_>, kind: &str) -> bool {
    KINDS.iter().any(|(was, now)| *now == kind && tag.has_class(was))
}

/// Adds the properties of `item` that an element is.
pub(super) fn properties<'p>(
    item: HtmlElement<'p>,
    tag: HtmlElement<'p>,
    add: &mut impl FnMut(ValueForm, &'p str),
) {
    for (kind, class, form, name) in PROPERTIES {
        if tag.has_class(class) && item.has_class(kind) {
            add(form, name);
        }
    }
    if item.has_class("hentry") {
        let rel = |wanted: &str| tag.words("rel").any(|rel| rel.eq_ignore_ascii_case(wanted));
        if rel("bookmark") {
            add(ValueForm::Address, "url");
        }
        if rel("tag") && !tag.has_class("category") {
            add(ValueForm::Text, "category");
        }
    }
}
