//! Implied end tags.

/// The elements of items that contain text only.
const SIMPLE: [&str; 10] = [
    "title",
    "link",
    "guid",
    "id",
    "pubdate",
    "published",
    "updated",
    "category",
    "comments",
    "lastbuilddate",
];

/// Further elements that identify an item. HTML shares no names with either list except `title` and
/// `link`, which occur only in its head.
const OTHERS: [&str; 4] = ["description", "enclosure", "item", "entry"];

/// Items, and the elements that contain them.
const AROUND: [&str; 6] = ["item", "entry", "channel", "feed", "rss", "items"];

/// Elements that contain quoted items.
const QUOTES: [&str; 3] = ["content", "object", "target"];

/// Returns which of the open elements, listed outermost first, ends because `name` begins. All
/// elements inside it end with it.
///
/// An item ends an item, unless it is quoted content. An element of an item ends a text-only
/// element before it.
pub(super) fn end<'n>(
    around: impl DoubleEndedIterator<Item = &'n str> + ExactSizeIterator,
    name: &str,
) -> Option<usize> {
    let is = |name: &str, names: &[&str]| names.iter().any(|held| name.eq_ignore_ascii_case(held));
    if !is(local(name), &SIMPLE) && !is(local(name), &OTHERS) {
        return None;
    }
    let item = is(local(name), &["item", "entry"]);
    let mut simple = None;
    for (at, held) in around.enumerate().rev() {
        if item && held.eq_ignore_ascii_case(name) {
            return Some(at);
        }
        if is(held, &AROUND) || held.is_empty() {
            // Elements without a prefix, directly in an item.
            return simple.filter(|_| !name.contains(':'));
        }
        if is(local(held), &QUOTES) {
            return None;
        }
        simple = is(held, &SIMPLE).then_some(at);
        if !item && simple.is_none() {
            return None;
        }
    }
    None
}

fn local(name: &str) -> &str {
    name.bytes().position(|byte| byte == b':').map_or(name, |at| &name[at + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_cannot_be_nested_ends() {
        #[rustfmt::skip]
        let cases: [(&str, &[&str], &str, Option<usize>); 9] = [
            ("an item in an item",          &["", "rss", "channel", "item"],                 "item",        Some(3)),
            ("deep in an item",             &["", "rss", "channel", "item", "description", "b"], "item",    Some(3)),
            ("an entry quoted in another",  &["", "feed", "entry", "content"],               "entry",       None),
            ("a title not closed",          &["", "rss", "channel", "item", "title"],        "link",        Some(4)),
            ("a title of a channel",        &["", "rss", "channel", "title"],                "item",        Some(3)),
            ("a title in a picture",        &["", "feed", "entry", "content", "svg", "title"], "title",     None),
            ("markup in a title",           &["", "rss", "channel", "item", "title"],        "b",           None),
            ("what is in an image",         &["", "rss", "channel", "image"],                "title",       None),
            ("a module's title",            &["", "rss", "channel", "item", "title"],        "media:title", None),
        ];
        for (why, around, name, want) in cases {
            assert_eq!(end(around.iter().copied(), name), want, "{why}");
        }
    }
}
