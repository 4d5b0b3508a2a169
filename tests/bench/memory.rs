//! How much memory reading one large document takes at its peak, as a multiple of the document.
//!
//! A process of its own reads the document, and writes it as Atom where that is measured; the system says
//! how much memory it ever held (`VmHWM`). The document itself and the output count.

use std::error::Error;
use std::fmt::Write;
use std::hint::black_box;
use std::process::Command;
use std::{env, fs};

use feedgate_feed::Context;
use url::Url;

use super::megabytes;

/// Items of the large document: as many as are read of one (rule S16).
const ITEMS: usize = 5_000;

/// What is measured, each in a process of its own.
const SUBJECTS: [&str; 3] = ["feedgate", "feedgate, parsing", "feed-rs"];

/// Has a child measure each subject, and gives back their sentences.
pub(crate) fn ask() -> Result<String, Box<dyn Error>> {
    let mut sentences = String::new();
    for subject in SUBJECTS {
        let child = Command::new(env::current_exe()?).args(["remember", subject]).output()?;
        sentences += &String::from_utf8(child.stdout)?;
    }
    Ok(sentences.trim().to_owned())
}

/// Measures; to be run in a process that has done nothing else.
pub(crate) fn run(subject: &str) -> Result<(), Box<dyn Error>> {
    let before = kilobytes("VmRSS:")?;
    let document = large();
    let context = Context::new(Url::parse("http://feeds.test/feed.xml")?);
    let bytes = document.as_bytes();
    match subject {
        "feedgate" => {
            let normalized = feedgate_feed::normalize(bytes, &context)?;
            black_box((normalized.to_atom(), normalized));
        }
        "feedgate, parsing" => drop(black_box(feedgate_feed::parse::parse(bytes, &context)?)),
        "feed-rs" => drop(black_box(feed_rs::parser::parse(bytes)?)),
        _ => return Err(format!("nothing is called {subject}").into()),
    }
    let taken = (kilobytes("VmHWM:")? - before) * 1_024;
    println!(
        "peak memory of {subject}: {:.1} MB for a document of {:.1} MB, {:.2}x the document",
        megabytes(taken),
        megabytes(document.len()),
        megabytes(taken) / megabytes(document.len()),
    );
    Ok(())
}

fn kilobytes(field: &str) -> Result<usize, Box<dyn Error>> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let value = line.and_then(|line| line.split_whitespace().next());
    Ok(value.ok_or("the system does not say")?.parse()?)
}

/// A feed like many, only with more of it: about 2 kB an item, half of it markup.
fn large() -> String {
    let mut out = String::from(
        "<?xml version='1.0'?><rss version='2.0' xmlns:dc='http://purl.org/dc/elements/1.1/' \
         xmlns:content='http://purl.org/rss/1.0/modules/content/'><channel><title>Tides</title>\
         <link>http://tides.test/</link><description>Every one of them</description>",
    );
    let paragraph = "<p>High water at <a href=\"/ports/3?at=noon\">Ny Hamn</a>, and &eacute;ven \
        higher at <em>Saint-Malo</em> &mdash; mind the <img src=\"gauge.png\" alt=\"\"/> gauge.</p>";
    for item in 0..ITEMS {
        // Writing to a string cannot fail.
        let _ = write!(
            out,
            "<item><title>Tide no. {item} &amp; what it left</title>\
             <link>http://tides.test/{item}</link><guid>http://tides.test/{item}</guid>\
             <pubDate>Sat, 07 Sep 2002 00:00:01 GMT</pubDate><dc:creator>Ana</dc:creator>\
             <category>sea</category><category>moon</category>\
             <description>High water, and what it left behind.</description>\
             <content:encoded><![CDATA[{}]]></content:encoded></item>",
            paragraph.repeat(8)
        );
    }
    out + "</channel></rss>"
}
