//! Any bytes, normalized: nothing panics, and what is written is well-formed, holds
//! every entry, and can be normalized itself.
//!
//! A document that begins with a byte from 1 to 8, which none does, names with its
//! second byte what the server said of it; any other is taken as it is, so that a folder
//! of feeds is a folder of seeds.
#![no_main]

use cpu_time::ThreadTime;
use feedgate_feed::Context;
use feedgate_feed::normalize;
use libfuzzer_sys::fuzz_target;
use roxmltree::{Document, Node};
use url::Url;

/// What servers say; empty for nothing.
const CONTENT_TYPES: [&str; 8] = [
    "",
    "application/rss+xml",
    "text/xml; charset=iso-8859-1",
    "application/atom+xml; charset=utf-16",
    "text/html; charset=utf-8",
    "application/feed+json",
    "text/plain; charset=shift_jis",
    "application/xml; charset=\"nonsense",
];

const URLS: [&str; 4] = [
    "http://a.test/",
    "https://user@a.test:8443/b/c.xml?d=e&f=%20#g",
    "file:///feeds/a.xml",
    "urn:feed:a",
];

const ATOM: &str = "http://www.w3.org/2005/Atom";

/// Seconds of work that any document may take, and those that each megabyte of it may: ten
/// times what a build without the fuzzer's instruments may.
const WORK_S: (f64, f64) = (0.5, 10.0);

fuzz_target!(|data: &[u8]| {
    let begun = ThreadTime::now();
    read(data);
    let took = begun.elapsed().as_secs_f64();
    let (any, each) = WORK_S;
    assert!(took < any + each * data.len() as f64 / 1e6, "{took} s for {} bytes", data.len());
});

fn read(data: &[u8]) {
    let (context, bytes) = split(data);
    let Ok(mut first) = normalize(bytes, &context) else { return };
    let atom = first.to_atom();
    assert_eq!(entries_in(&atom), first.feed().entries.len(), "entries written");
    assert!(first.to_json().is_object(), "JSON has a root");
    again(&atom, &context);
    if data.first() == Some(&8) {
        first.detect_languages();
        let told = first.to_atom();
        assert_eq!(entries_in(&told), first.feed().entries.len(), "entries with a language");
    }
}

fn split(data: &[u8]) -> (Context, &[u8]) {
    let (choice, bytes) = match data {
        [1..=8, choice, bytes @ ..] => (usize::from(*choice), bytes),
        _ => (0, data),
    };
    let url = Url::parse(URLS[choice / CONTENT_TYPES.len() % URLS.len()]).expect("they are URLs");
    let content_type = CONTENT_TYPES[choice % CONTENT_TYPES.len()];
    (context(url, content_type), bytes)
}

fn context(url: Url, content_type: &str) -> Context {
    let mut context = Context::new(url);
    if !content_type.is_empty() {
        context.headers.push(("content-type".to_owned(), content_type.to_owned()));
    }
    context
}

/// The entries a strict reader finds.
fn entries_in(atom: &str) -> usize {
    let document = Document::parse(atom).expect("what is written is well-formed");
    let root = document.root_element();
    assert!(root.has_tag_name((ATOM, "feed")), "the root is a feed");
    root.children().filter(|child: &Node<'_, '_>| child.has_tag_name((ATOM, "entry"))).count()
}

/// Normalizes our own output.
fn again(atom: &str, context: &Context) {
    let context = self::context(context.url.clone(), "application/atom+xml");
    normalize(atom.as_bytes(), &context).expect("our own output is a feed");
}
