//! Microformats in a page: microformats2 and the classic microformats before it.
//!
//! An item is an element with a class such as `h-entry`. Its properties are the elements in it with
//! a class such as `p-name`, except those inside nested items. Items are read on demand, so nested
//! items cost nothing until they are used, and nothing recurses. The rules are those of the
//! microformats2 parsing specification.
//!
//! Only known kinds of items count: `h-full` and `h-auto` are CSS utility classes for heights.

mod classic;
mod value;

pub(super) use value::absolute;

use super::html::{Descend, HtmlElement};

/// The known kinds of items.
#[rustfmt::skip]
const KINDS: [&str; 15] = [
    "h-adr", "h-app", "h-card", "h-cite", "h-entry", "h-event", "h-feed", "h-geo", "h-item",
    "h-listing", "h-product", "h-recipe", "h-resume", "h-review", "h-x-app",
];

/// The maximum number of properties of one item: more than several people would ever write.
const PROPERTIES: usize = 256;

/// How many times over the properties of an item may hold its content, by nesting or by several
/// properties on one element. The rest is left out; three times is usual.
const OFTEN: usize = 8;

/// The minimum total size of property values that every item may have, in bytes, however small its
/// content is.
const ROOM_BYTES: usize = 64 * 1024;

/// An item of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MicroformatItem<'p> {
    /// The element that is the item.
    pub(super) tag: HtmlElement<'p>,
    /// Whether the item is marked up with classic microformats.
    pub(super) is_classic: bool,
}

/// The form in which the value of a property is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueForm {
    /// `p-`: text.
    Text,
    /// `u-`: an address.
    Address,
    /// `dt-`: a date.
    Date,
    /// `e-`: markup.
    Markup,
}

/// A property of an item.
#[derive(Clone, Copy, Debug)]
pub(super) struct Property<'p> {
    /// The name, without the prefix.
    pub(super) name: &'p str,
    /// The form of the value.
    pub(super) form: ValueForm,
    /// The element that holds the value.
    pub(super) tag: HtmlElement<'p>,
    /// The item that is the value, if it is one.
    pub(super) item: Option<MicroformatItem<'p>>,
}

impl<'p> MicroformatItem<'p> {
    /// Returns the item that an element is.
    pub(super) fn at(tag: HtmlElement<'p>) -> Option<MicroformatItem<'p>> {
        if tag.words("class").any(|class| KINDS.contains(&class)) {
            return Some(MicroformatItem { tag, is_classic: false });
        }
        classic::is_item(tag).then_some(MicroformatItem { tag, is_classic: true })
    }

    /// Returns whether the item is of this kind.
    pub(super) fn is(self, kind: &str) -> bool {
        if self.is_classic { classic::is(self.tag, kind) } else { self.tag.has_class(kind) }
    }

    /// Returns the items of this kind in the item, except those inside other items.
    pub(super) fn items(self, kind: &str) -> Vec<MicroformatItem<'p>> {
        let mut found = outermost(self.tag);
        found.retain(|item| item.is(kind));
        found
    }

    /// Returns the properties, in document order.
    pub(super) fn properties(self) -> Vec<Property<'p>> {
        let mut found = Vec::new();
        let mut room = OFTEN * self.tag.size(usize::MAX) + ROOM_BYTES;
        self.tag.walk(|tag| {
            let item = MicroformatItem::at(tag);
            let mut add = |form, name| {
                if found.len() >= PROPERTIES {
                    return;
                }
                let size = tag.size(room);
                if size < room {
                    room -= size;
                    found.push(Property { name, form, tag, item });
                } else {
                    room /= 2; // bounds the cost of measuring, too
                }
            };
            if self.is_classic {
                classic::properties(self.tag, tag, &mut add);
            } else {
                modern(tag, &mut add);
            }
            if item.is_some() { Descend::Skip } else { Descend::Enter }
        });
        found
    }

    /// Returns the implied name of an item without a `name` property: its text, if no other
    /// property has a text.
    pub(super) fn implied_name(self, properties: &[Property<'p>]) -> Option<String> {
        let told = |held: &Property<'_>| matches!(held.form, ValueForm::Text | ValueForm::Markup);
        if self.is_classic || properties.iter().any(told) || self.has_items() {
            return None;
        }
        let names = |tag: HtmlElement<'p>| match tag.name() {
            "img" | "area" => tag.attr("alt"),
            "abbr" => tag.attr("title"),
            _ => None,
        };
        let named = |tag| names(tag).filter(|name| !name.is_empty()).map(str::to_owned);
        let own = self.alone().into_iter().find_map(named);
        own.or_else(|| Some(self.tag.text())).filter(|name| !name.is_empty())
    }

    /// Returns the implied address of an item without a `url` property.
    pub(super) fn implied_url(self, properties: &[Property<'p>]) -> Option<&'p str> {
        let addressed = |held: &Property<'_>| held.form == ValueForm::Address;
        if self.is_classic || properties.iter().any(addressed) || self.has_items() {
            return None;
        }
        self.only(&["a", "area"]).and_then(|tag| tag.attr("href"))
    }

    /// Returns the implied picture of an item without a `photo` property.
    pub(super) fn implied_photo(self, properties: &[Property<'p>]) -> Option<&'p str> {
        let addressed = |held: &Property<'_>| held.form == ValueForm::Address;
        if self.is_classic || properties.iter().any(addressed) || self.has_items() {
            return None;
        }
        let tag = self.only(&["img", "object"])?;
        tag.attr(if tag.name() == "img" { "src" } else { "data" })
    }

    /// Returns whether the item contains items. Nothing is implied for such an item.
    fn has_items(self) -> bool {
        !outermost(self.tag).is_empty()
    }

    /// Returns the element and its only descendants, two levels deep.
    fn alone(self) -> Vec<HtmlElement<'p>> {
        std::iter::successors(Some(self.tag), |tag| tag.only_element()).take(3).collect()
    }

    /// Returns the element that has one of these names: the item itself, the only element of that
    /// name in it, or the only one in its only child.
    fn only(self, names: &[&str]) -> Option<HtmlElement<'p>> {
        if names.contains(&self.tag.name()) {
            return Some(self.tag);
        }
        let around = [Some(self.tag), self.tag.only_element()];
        around.into_iter().flatten().find_map(|tag| {
            let mut held = names.iter().filter_map(|name| tag.only_named(name));
            held.next()
        })
    }
}

/// Returns the items below an element, except those inside other items.
pub(super) fn outermost(top: HtmlElement<'_>) -> Vec<MicroformatItem<'_>> {
    let mut found = Vec::new();
    top.walk(|tag| match MicroformatItem::at(tag) {
        Some(item) => {
            found.push(item);
            Descend::Skip
        }
        None => Descend::Enter,
    });
    found
}

/// Adds the properties that an element is in microformats2.
fn modern<'p>(tag: HtmlElement<'p>, add: &mut impl FnMut(ValueForm, &'p str)) {
    let mut seen: Vec<&str> = Vec::new();
    for class in tag.words("class").take(PROPERTIES) {
        let Some((prefix, name)) = class.split_once('-') else { continue };
        let form = match prefix {
            "p" => ValueForm::Text,
            "u" => ValueForm::Address,
            "dt" => ValueForm::Date,
            "e" => ValueForm::Markup,
            _ => continue,
        };
        if is_name(name) && !seen.contains(&class) {
            seen.push(class);
            add(form, name);
        }
    }
}

/// Returns whether a class suffix can be the name of a property: `p-4` is a CSS utility class for a
/// padding.
fn is_name(name: &str) -> bool {
    let letters = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase());
    let vendor = |word: &str| {
        word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit()) && !word.is_empty()
    };
    match name.split_once('-') {
        Some((first, rest)) => vendor(first) && rest.split('-').all(letters),
        None => letters(name),
    }
}

#[cfg(test)]
mod tests {
    use super::super::html::ParsedHtml;
    use super::*;

    /// Parses a page and calls `look` with its first item.
    fn with_item<T>(html: &str, look: impl FnOnce(MicroformatItem<'_>) -> T) -> T {
        let page = ParsedHtml::read(html);
        look(outermost(page.root().unwrap())[0])
    }

    #[test]
    fn properties_are_those_of_the_item_itself() {
        #[rustfmt::skip]
        let cases = [
            ("one",                       "<p class=h-entry><b class=p-name>x</b></p>",                 "name"),
            ("two on one element",        "<p class=h-entry><b class='p-name p-summary'>x</b></p>",     "name summary"),
            ("not those of another item", "<p class=h-entry><b class=h-card><i class=p-name>x</i></b>", ""),
            ("but that item, if it is one", "<p class=h-entry><b class='p-author h-card'>x</b></p>",    "author"),
            ("those in markup",           "<p class=h-entry><b class=e-content><i class=p-x>x</i></b>", "content x"),
            ("no heights and distances",  "<p class='h-entry h-full'><b class='p-4 h-4 p-name'>x</b>",  "name"),
            ("no capitals",               "<p class=h-entry><b class='p-Name u-x1'>x</b></p>",          ""),
            ("a vendor's",                "<p class=h-entry><b class=p-x2-name>x</b></p>",              "x2-name"),
            ("classic",                   "<p class=hentry><b class=entry-title>x</b></p>",             "name"),
            ("none in a template",        "<p class=h-entry><template><b class=p-name></template></p>", ""),
        ];
        for (why, html, want) in cases {
            let names = |item: MicroformatItem<'_>| {
                item.properties().iter().map(|held| held.name.to_owned()).collect::<Vec<_>>()
            };
            assert_eq!(with_item(html, names).join(" "), want, "{why}");
        }
    }

    #[test]
    fn properties_hold_only_so_much_of_what_is_in_their_item() {
        let names: String = ('a'..='z').map(|c| format!("p-x{c} ")).collect();
        let html = format!("<p class=h-entry><b class='{names}'>{}", "x".repeat(ROOM_BYTES));
        with_item(&html, |item| {
            assert_eq!(item.properties().len(), OFTEN + 1);
        });
    }

    #[test]
    fn what_is_not_said_is_implied_where_nothing_is_said() {
        #[rustfmt::skip]
        let cases = [
            ("the text",                 "<p class=h-card>Ada  L</p>",                          Some("Ada L"), None, None),
            ("a link",                   "<a class=h-card href=/ada>Ada</a>",                   Some("Ada"), Some("/ada"), None),
            ("a picture",                "<img class=h-card src=a.png alt=Ada>",                Some("Ada"), None, Some("a.png")),
            ("a picture in a link",      "<a class=h-card href=/ada><img src=a.png alt=Ada></a>", Some("Ada"), Some("/ada"), Some("a.png")),
            ("one link among others",    "<p class=h-card><b>A</b> <a href=/x>x</a></p>",       Some("A x"), Some("/x"), None),
            ("several links",            "<p class=h-card><a href=/x>x</a><a href=/y>y</a></p>", Some("xy"), None, None),
            ("a name is said",           "<p class=h-card><b class=p-name>A</b></p>",           None, None, None),
            ("an item is in it",         "<p class=h-card><b class=h-adr>A</b></p>",            None, None, None),
            ("a classic one",            "<p class=vcard>A</p>",                                None, None, None),
        ];
        for (why, html, name, url, photo) in cases {
            with_item(html, |item| {
                let held = item.properties();
                assert_eq!(item.implied_name(&held).as_deref(), name, "{why}");
                assert_eq!(item.implied_url(&held), url, "{why}");
                assert_eq!(item.implied_photo(&held), photo, "{why}");
            });
        }
    }
}
