//! How much memory a normalization takes at its peak, as a multiple of the document.
//!
//! A process of its own reads one large document and writes it as Atom; the system says
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

/// Has a child measure, and gives back its sentence.
pub(crate) fn ask() -> Result<String, Box<dyn Error>> {
    let child = Command::new(env::current_exe()?).arg("remember").output()?;
    Ok(String::from_utf8(child.stdout)?.trim().to_owned())
}

/// Measures; to be run in a process that has done nothing else.
pub(crate) fn run() -> Result<(), Box<dyn Error>> {
    let before = kilobytes("VmRSS:")?;
    let document = large();
    let url = Url::parse("http://feeds.test/feed.xml")?;
    let normalized = feedgate_feed::normalize(document.as_bytes(), &Context::new(url))?;
    let atom = black_box(normalized.to_atom());
    let taken = (kilobytes("VmHWM:")? - before) * 1_024;
    println!(
        "peak memory: {:.1} MB for a document of {:.1} MB and {:.1} MB of Atom, {:.2}x the document",
        megabytes(taken),
        megabytes(document.len()),
        megabytes(atom.len()),
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
