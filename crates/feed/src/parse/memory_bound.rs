//! Limits on the memory that one document can take while it is read (rules S16, S18).
//!
//! A tree takes far more memory than its text: measured, `<a/>` takes 480 bytes as an element of
//! the tree and of the feed, and `{"":0},` takes 700 bytes as a JSON value. So the number of nodes
//! is limited by the length of the document, generously for small ones, and in total.
//! [`memory_bound`] tells before parsing what a document can take under these limits.

/// Memory for each byte of a document: its text, decoded, in the feed, and rendered with escapes.
const PER_BYTE: usize = 8;
/// Memory for an element or attribute, in the tree and in two copies of the feed.
const PER_NODE: usize = 480;
/// Memory for a JSON value of 72 bytes in a list that grows, when it has just doubled: the list and
/// the one before it, which is copied.
const PER_VALUE: usize = 216;
/// The number of values for which an object or a list counts: it has a table of its own.
const PER_CONTAINER: usize = 3;

/// The most nodes of any document: 50 for each of the entries that are read of a feed.
const MOST_NODES: usize = 50 * super::MAX_ENTRIES;
/// The most values of any JSON document: 100 for each of the entries that are read of a feed.
const MOST_VALUES: usize = 100 * super::MAX_ENTRIES;
/// The nodes and values that even the smallest document may have.
const FREE: usize = 32 * 1024;

/// Returns the most elements, texts and attributes that are read of a document of this length: one
/// for each 16 bytes. Feeds have one for each 30 bytes.
pub(super) fn max_nodes(bytes: usize) -> usize {
    (FREE + bytes / 16).min(MOST_NODES)
}

/// Returns the most values of a JSON document of this length; containers count threefold.
fn max_values(bytes: usize) -> usize {
    (FREE + bytes / 8).min(MOST_VALUES)
}

/// Returns whether a JSON text has more values than are read of a text of its length.
pub(crate) fn has_too_many_values(text: &str) -> bool {
    let (mut values, mut is_quoted, mut is_escaped) = (0, false, false);
    for byte in text.bytes() {
        if is_quoted {
            (is_quoted, is_escaped) = (byte != b'"' || is_escaped, byte == b'\\' && !is_escaped);
        } else {
            is_quoted = byte == b'"';
            values += json_weight(byte);
        }
    }
    values > max_values(text.len())
}

fn json_weight(byte: u8) -> usize {
    match byte {
        b'{' | b'[' => PER_CONTAINER,
        // The colon of a member counts nothing: an object has room for several members.
        b',' => 1,
        _ => 0,
    }
}

/// Returns the most memory, in bytes, that any document of this length takes while it is read,
/// normalized and rendered. Memory for the bytes themselves is not included.
pub fn max_memory(length: usize) -> usize {
    length * PER_BYTE + max_tree(length)
}

/// Returns the most memory that a tree takes, of elements or of JSON values. A document of this length has
/// no room for the most of both.
fn max_tree(length: usize) -> usize {
    (max_nodes(length) * PER_NODE).max(max_values(length) * PER_VALUE)
}

/// Returns the most memory, in bytes, that a document takes while it is read, normalized and
/// rendered: no more than [`max_memory`] of its length.
pub fn memory_bound(document: &[u8]) -> usize {
    let markup = || {
        let nodes = document.iter().filter(|byte| matches!(byte, b'<' | b'=')).count();
        // A text may follow each tag.
        (2 * nodes).min(max_nodes(document.len())) * PER_NODE
    };
    let json = || {
        let values = document.iter().map(|byte| json_weight(*byte)).sum::<usize>();
        values.min(max_values(document.len())) * PER_VALUE
    };
    let first = document.iter().find(|byte| byte.is_ascii_graphic());
    let tree = match first {
        // A page with JSON in its scripts, which only plain text shows before it is decoded.
        Some(b'<') if mentions_json_ld(document) || !is_plain(document) => {
            (markup() + json()).min(max_tree(document.len()))
        }
        Some(b'<') => markup(),
        Some(b'{' | b'[') => json(),
        _ => markup().max(json()),
    };
    document.len() * PER_BYTE + tree
}

/// Returns whether a text names the media type of JSON-LD.
pub(super) fn mentions_json_ld(text: &[u8]) -> bool {
    let (before, after) = (&b"ld"[..], &b"json"[..]);
    memchr::memchr_iter(b'+', text).any(|at| {
        let begin = at.checked_sub(before.len()).map(|begin| &text[begin..at]);
        let end = text[at + 1..].get(..after.len());
        begin.is_some_and(|begin| begin.eq_ignore_ascii_case(before))
            && end.is_some_and(|end| end.eq_ignore_ascii_case(after))
    })
}

/// Returns whether a document is ASCII or UTF-8, without the bytes by which other encodings are told.
fn is_plain(document: &[u8]) -> bool {
    memchr::memchr2(0, ESCAPE, document).is_none() && std::str::from_utf8(document).is_ok()
}

/// The byte that switches between sets of characters in ISO 2022.
const ESCAPE: u8 = 0x1b;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s16_json_with_too_many_values_is_recognized_before_it_is_read() {
        let of = |unit: &str| format!("[{}1]", unit.repeat(1024 * 1024 / unit.len()));
        #[rustfmt::skip]
        let cases = [
            ("numbers of a few digits",     of("12345678,"),                                 false),
            ("records",                     of("{\"name\": \"High water\", \"at\": \"12:00\", \"height\": 3.5},"), false),
            ("a text of nothing else",      format!("[\"{}\"]", ",[".repeat(1024 * 1024)),   false),
            ("quotes in texts",             of("\"\\\",,,,,,,,,,,,,,,,,,,,,,,,,,\","),        false),
            ("numbers of one digit",        of("1,"),                                        true),
            ("empty lists",                 of("[],"),                                       true),
            ("objects",                     of("{\"\":0},"),                                  true),
            ("few of them",                 "[[],[],[],[]]".to_owned(),                      false),
        ];
        for (why, text, want) in cases {
            assert_eq!(has_too_many_values(&text), want, "{why}");
        }
    }

    #[test]
    fn s16_json_in_a_page_counts_however_it_is_written() {
        let json = "[],".repeat(100_000);
        let page = |label: &str| format!("<script type='{label}'>[{json}1]</script>");
        let plain = memory_bound(page("application/ld+json").as_bytes());
        assert!(plain > memory_bound(page("text/javascript").as_bytes()));
        assert_eq!(memory_bound(page("application/LD+Json").as_bytes()), plain);
        let utf16: Vec<u8> =
            page("application/ld+json").encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert!(memory_bound(&utf16) >= plain);
        let switched = page("application/ld\u{1b}(B+json");
        assert!(memory_bound(switched.as_bytes()) >= plain);
    }

    #[test]
    fn s16_no_document_takes_more_than_a_few_dozen_times_its_length() {
        const LENGTH: usize = 10 * 1024 * 1024;
        for unit in ["<a/>", "<a b=''/>", "[],", "{\"\":0},", "x", "\u{0}"] {
            let bound = memory_bound(unit.repeat(LENGTH / unit.len()).as_bytes());
            assert!(bound <= max_memory(LENGTH) && bound <= 20 * LENGTH, "{unit}: {bound}");
        }
        let feed = "<item><title>High water</title><link>http://tides.test/1</link></item>";
        let bound = memory_bound(feed.repeat(1_000).as_bytes());
        assert!(bound < 8 * 1024 * 1024, "a feed of a thousand entries is a small document");
    }
}
