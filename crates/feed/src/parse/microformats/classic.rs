//! The microformats of before microformats2: hAtom, hCard, adr and geo.
//!
//! Their names have no prefixes, so each is only looked for in items of its kind. In
//! these nothing is implied.

use super::{Form, HtmlElement};

/// Kinds of items, and what they are called now.
const KINDS: [(&str, &str); 5] = [
    ("hfeed", "h-feed"),
    ("hentry", "h-entry"),
    ("vcard", "h-card"),
    ("adr", "h-adr"),
    ("geo", "h-geo"),
];

/// Kind of item, class, and the property that it is now.
const PROPERTIES: [(&str, &str, Form, &str); 28] = [
    ("hfeed", "author", Form::Text, "author"),
    ("hfeed", "photo", Form::Address, "photo"),
    ("hfeed", "url", Form::Address, "url"),
    ("hentry", "entry-title", Form::Text, "name"),
    ("hentry", "entry-summary", Form::Text, "summary"),
    ("hentry", "entry-content", Form::Markup, "content"),
    ("hentry", "published", Form::Date, "published"),
    ("hentry", "updated", Form::Date, "updated"),
    ("hentry", "author", Form::Text, "author"),
    ("hentry", "category", Form::Text, "category"),
    ("hentry", "geo", Form::Text, "geo"),
    ("hentry", "latitude", Form::Text, "latitude"),
    ("hentry", "longitude", Form::Text, "longitude"),
    ("vcard", "fn", Form::Text, "name"),
    ("vcard", "nickname", Form::Text, "nickname"),
    ("vcard", "org", Form::Text, "org"),
    ("vcard", "url", Form::Address, "url"),
    ("vcard", "email", Form::Address, "email"),
    ("vcard", "photo", Form::Address, "photo"),
    ("vcard", "logo", Form::Address, "logo"),
    ("vcard", "adr", Form::Text, "adr"),
    ("vcard", "geo", Form::Text, "geo"),
    ("adr", "locality", Form::Text, "locality"),
    ("adr", "region", Form::Text, "region"),
    ("adr", "country-name", Form::Text, "country-name"),
    ("adr", "geo", Form::Text, "geo"),
    ("geo", "latitude", Form::Text, "latitude"),
    ("geo", "longitude", Form::Text, "longitude"),
];

/// Whether an element is a classic item.
pub(super) fn is_item(tag: HtmlElement<'_>) -> bool {
    tag.words("class").any(|class| KINDS.iter().any(|(kind, _)| *kind == class))
}

/// Whether an element is a classic item of what is now called `kind`.
pub(super) fn is(tag: HtmlElement<'_>, kind: &str) -> bool {
    KINDS.iter().any(|(was, now)| *now == kind && tag.has_class(was))
}

/// The properties of `item` that an element is.
pub(super) fn properties<'p>(
    item: HtmlElement<'p>,
    tag: HtmlElement<'p>,
    add: &mut impl FnMut(Form, &'p str),
) {
    for (kind, class, form, name) in PROPERTIES {
        if tag.has_class(class) && item.has_class(kind) {
            add(form, name);
        }
    }
    if item.has_class("hentry") {
        let rel = |wanted: &str| tag.words("rel").any(|rel| rel.eq_ignore_ascii_case(wanted));
        if rel("bookmark") {
            add(Form::Address, "url");
        }
        if rel("tag") && !tag.has_class("category") {
            add(Form::Text, "category");
        }
    }
}
