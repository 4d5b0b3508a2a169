//! The values of properties: by element, and by the value class pattern.

use url::Url;

use super::{HtmlElement, Property};
use crate::parse::html::Descend;

impl<'p> Property<'p> {
    /// Returns the value as text.
    pub(in crate::parse) fn text(self) -> String {
        let pieces = pieces(self.tag);
        if pieces.is_empty() { plain(self.tag) } else { pieces.concat() }
    }

    /// Returns the value as an absolute address; `None` if it is empty.
    pub(in crate::parse) fn address(self, base: &Url) -> Option<String> {
        let address = match attribute(self.tag) {
            Some(address) => address.to_owned(),
            None => self.text(),
        };
        Some(absolute(base, &address)).filter(|address| !address.is_empty())
    }

    /// Returns the value as the text of a date.
    pub(in crate::parse) fn date(self) -> String {
        let pieces = pieces(self.tag);
        match pieces.len() {
            0 => moment(self.tag).map_or_else(|| plain(self.tag), str::to_owned),
            1 => pieces.concat(),
            _ => put_together(&pieces),
        }
    }
}

/// Returns an absolute address as it is, and resolves a relative one.
pub(in crate::parse) fn absolute(base: &Url, address: &str) -> String {
    let address = address.trim();
    if Url::parse(address).is_ok() {
        return address.to_owned();
    }
    base.join(address).map_or_else(|_| address.to_owned(), String::from)
}

/// Returns the attribute with the address of an element.
fn attribute(tag: HtmlElement<'_>) -> Option<&str> {
    match tag.name() {
        "a" | "area" | "link" => tag.attr("href"),
        "img" | "audio" | "source" | "iframe" | "embed" => tag.attr("src"),
        "video" => tag.attr("src").or_else(|| tag.attr("poster")),
        "object" => tag.attr("data"),
        _ => None,
    }
}

/// Returns the attribute with the date of an element.
fn moment(tag: HtmlElement<'_>) -> Option<&str> {
    match tag.name() {
        "time" | "ins" | "del" => tag.attr("datetime"),
        _ => None,
    }
}

/// Returns the text that represents an element.
fn plain(tag: HtmlElement<'_>) -> String {
    let stands = match tag.name() {
        "abbr" | "link" => tag.attr("title"),
        "data" | "input" => tag.attr("value"),
        "img" | "area" => tag.attr("alt"),
        _ => None,
    };
    stands.map_or_else(|| tag.text(), str::to_owned)
}

/// Returns the parts of a value that is split into `value` and `value-title` elements.
fn pieces(top: HtmlElement<'_>) -> Vec<String> {
    let mut found = Vec::new();
    top.walk(|tag| {
        if tag.has_class("value-title") {
            found.push(tag.attr("title").unwrap_or_default().to_owned());
        } else if tag.has_class("value") {
            found.push(moment(tag).map_or_else(|| plain(tag), str::to_owned));
        } else if super::MicroformatItem::at(tag).is_none() {
            return Descend::Enter;
        }
        Descend::Skip
    });
    found
}

/// Joins a date, a time and a zone, in whatever order they are given.
fn put_together(pieces: &[String]) -> String {
    let (mut date, mut time, mut zone) = ("", String::new(), "");
    for piece in pieces {
        let piece = piece.trim();
        let is_zone = matches!(piece, "Z" | "z") || piece.starts_with(['+', '-']);
        if is_zone && zone.is_empty() {
            zone = piece;
        } else if is_time(piece) && time.is_empty() {
            time = in_24_hours(piece);
        } else if date.is_empty() {
            date = piece;
        }
    }
    if time.is_empty() { date.to_owned() } else { format!("{date}T{time}{zone}") }
}

/// Returns whether a part begins like `7:30`, `7:30pm` or `7pm`.
fn is_time(piece: &str) -> bool {
    let rest = piece.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = piece.len() - rest.len();
    let half_day = rest.trim_start().as_bytes().first().map(u8::to_ascii_lowercase);
    (1..=2).contains(&digits) && (rest.starts_with(':') || matches!(half_day, Some(b'a' | b'p')))
}

/// Converts `7:30pm` into `19:30`. A time without AM or PM stays as it is.
fn in_24_hours(piece: &str) -> String {
    let Some(at) = piece.find(|c: char| c.is_ascii_alphabetic() && !matches!(c, 'Z' | 'z')) else {
        return if piece.find(':') == Some(1) { format!("0{piece}") } else { piece.to_owned() };
    };
    let (clock, half) = piece.split_at(at);
    let clock = clock.trim();
    let (hour, minutes) = clock.split_once(':').unwrap_or((clock, "00"));
    let hour: u32 = hour.parse().unwrap_or(0);
    let hour = match half.as_bytes().first() {
        Some(b'p' | b'P') if hour < 12 => hour + 12,
        Some(b'a' | b'A') if hour == 12 => 0,
        _ => hour,
    };
    format!("{hour:02}:{minutes}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::dates;
    use crate::parse::html::ParsedHtml;
    use crate::parse::microformats::outermost;

    #[test]
    fn a_date_may_be_scattered() {
        #[rustfmt::skip]
        let cases = [
            ("in an attribute",  "<time class=dt-x datetime=2002-09-07T10:00:00+02:00>then</time>", "2002-09-07T10:00:00+02:00"),
            ("as text",          "<b class=dt-x>2002-09-07 10:00</b>",                              "2002-09-07T10:00:00+00:00"),
            ("date and time",    "<b class=dt-x><i class=value>2002-09-07</i> at <i class=value>10:00</i></b>", "2002-09-07T10:00:00+00:00"),
            ("time first",       "<b class=dt-x><i class=value>7:30pm</i> <i class=value>2002-09-07</i></b>", "2002-09-07T19:30:00+00:00"),
            ("an hour",          "<b class=dt-x><i class=value>2002-09-07</i> <i class=value>7 p.m.</i></b>", "2002-09-07T19:00:00+00:00"),
            ("with a zone",      "<b class=dt-x><i class=value>2002-09-07</i><i class=value>10:00</i><i class=value>+0200</i></b>", "2002-09-07T10:00:00+02:00"),
            ("in titles",        "<b class=dt-x><i class=value-title title=2002-09-07T10:00Z>then</i></b>", "2002-09-07T10:00:00+00:00"),
            ("abbreviated",      "<abbr class=dt-x title=2002-09-07>then</abbr>",                   "2002-09-07T00:00:00+00:00"),
        ];
        for (why, html, want) in cases {
            let page = ParsedHtml::read(&format!("<div class=h-entry>{html}</div>"));
            let item = outermost(page.root().unwrap())[0];
            let date = item.properties()[0].date();
            let read = dates::parse(&date).map(|date| date.to_rfc3339());
            assert_eq!(read.as_deref(), Some(want), "{why}: {date}");
        }
    }

    #[test]
    fn a_value_depends_on_its_element() {
        #[rustfmt::skip]
        let cases = [
            ("<a class=u-x href=/a>b</a>",                 "b",   "https://a.test/a"),
            ("<a class=u-x href=HTTP://B.test/%7e>b</a>",  "b",   "HTTP://B.test/%7e"),
            ("<img class=u-x src=c.png alt=d>",            "d",   "https://a.test/c.png"),
            ("<video class=u-x poster=e.png></video>",     "",    "https://a.test/e.png"),
            ("<object class=u-x data=f></object>",         "",    "https://a.test/f"),
            ("<data class=u-x value=g>h</data>",           "g",   "https://a.test/g"),
            ("<abbr class=u-x title=i>j</abbr>",           "i",   "https://a.test/i"),
            ("<b class=u-x>k <i>l</i><script>m</script></b>", "k l", "https://a.test/k%20l"),
            ("<b class=u-x>n<i class=value>o</i><i class=value>p</i></b>", "op", "https://a.test/op"),
        ];
        let base = Url::parse("https://a.test/").unwrap();
        for (html, text, address) in cases {
            let page = ParsedHtml::read(&format!("<div class=h-entry>{html}</div>"));
            let property = outermost(page.root().unwrap())[0].properties()[0];
            assert_eq!(property.text(), text, "{html}");
            assert_eq!(property.address(&base).as_deref(), Some(address), "{html}");
        }
    }
}
