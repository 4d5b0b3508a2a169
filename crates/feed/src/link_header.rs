//! The `Link` header (RFC 8288).
//!
//! Servers write it carelessly, so parsing is lenient: a link is a target in angle brackets
//! followed by parameters, quoted or not. Anything else is skipped up to the next target.

/// A link of a `Link` header. The target is as written, and may be relative to the resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderLink {
    /// The target of the link.
    pub target: String,
    /// The relations, in lower case; a link may have several.
    pub rels: Vec<String>,
    /// `type`: the media type of the target, in lower case.
    pub mime: Option<String>,
    /// `title`.
    pub title: Option<String>,
}

impl HeaderLink {
    /// Returns whether the link has this relation.
    pub fn is(&self, rel: &str) -> bool {
        self.rels.iter().any(|own| own == rel)
    }
}

/// Returns the links of all `Link` headers of a response, in order.
pub fn read<'a>(values: impl Iterator<Item = &'a str>) -> Vec<HeaderLink> {
    let mut links = Vec::new();
    for value in values {
        let mut rest = value;
        while let Some((_, at)) = rest.split_once('<') {
            let Some((target, params)) = at.split_once('>') else { break };
            let (params, after) = params.split_at(end_of_link(params));
            links.extend(link(target.trim(), params));
            rest = after;
        }
    }
    links
}

/// Returns the end of a link's parameters: the first comma outside quotes.
fn end_of_link(params: &str) -> usize {
    let mut quoted = false;
    let mut escaped = false;
    let end = params.bytes().position(|byte| {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b',' => return !quoted,
            _ => {}
        }
        false
    });
    end.unwrap_or(params.len())
}

/// Parses one link. A link without a relation is skipped, and so is one with an `anchor`, because
/// it describes another resource (RFC 8288 `#section-3.2`).
fn link(target: &str, params: &str) -> Option<HeaderLink> {
    let mut link =
        HeaderLink { target: target.to_owned(), rels: Vec::new(), mime: None, title: None };
    for param in split(params) {
        let (name, value) = param.split_once('=').unwrap_or((param, ""));
        let value = unquoted(value.trim());
        match name.trim().to_ascii_lowercase().as_str() {
            "anchor" => return None,
            // "The rel parameter MUST NOT appear more than once; occurrences after the
            // first MUST be ignored" (`#section-3.3`).
            "rel" if link.rels.is_empty() => {
                let rels = value.split_ascii_whitespace().map(str::to_ascii_lowercase);
                link.rels = rels.collect();
            }
            "type" => link.mime = Some(value.to_ascii_lowercase()),
            "title" => link.title = Some(value),
            _ => {}
        }
    }
    Some(link).filter(|link| !link.rels.is_empty() && !link.target.is_empty())
}

/// Splits at semicolons outside quotes.
fn split(params: &str) -> Vec<&str> {
    let (mut quoted, mut escaped) = (false, false);
    let parts = params.split(|c: char| {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            ';' => return !quoted,
            _ => {}
        }
        false
    });
    parts.map(str::trim).filter(|part| !part.is_empty()).collect()
}

fn unquoted(value: &str) -> String {
    let Some(inner) = value.strip_prefix('"') else { return value.to_owned() };
    let mut text = String::new();
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => break,
            '\\' => text.extend(chars.next()),
            c => text.push(c),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Target, relations, media type and title of each link.
    type Told<'a> = &'a [(&'a str, &'a [&'a str], Option<&'a str>, Option<&'a str>)];

    #[test]
    fn links_are_read_as_servers_write_them() {
        #[rustfmt::skip]
        let cases: &[(&str, Told<'_>)] = &[
            ("<https://hub.test/>; rel=\"hub\"",              &[("https://hub.test/", &["hub"], None, None)]),
            ("<https://hub.test/>;rel=hub",                   &[("https://hub.test/", &["hub"], None, None)]),
            ("<h>; rel=hub, <s>; rel=self",                   &[("h", &["hub"], None, None), ("s", &["self"], None, None)]),
            ("<x,y>; rel=\"Self HUB\"; rel=next",             &[("x,y", &["self", "hub"], None, None)]),
            ("</feed>; rel=alternate; type=\"Application/Atom+XML\"; title=\"a, \\\"b\\\"; c\", <h>; REL=hub",
                &[("/feed", &["alternate"], Some("application/atom+xml"), Some("a, \"b\"; c")), ("h", &["hub"], None, None)]),
            ("<a>; rel=hub; anchor=\"#x\"",                   &[]),
            ("<a>; title=nothing",                            &[]),
            ("<>; rel=hub",                                   &[]),
            ("<a",                                            &[]),
            ("rel=hub",                                       &[]),
            ("",                                              &[]),
        ];
        for (header, want) in cases {
            let links = read(std::iter::once(*header));
            let told: Vec<_> = links
                .iter()
                .map(|link| {
                    let rels: Vec<&str> = link.rels.iter().map(String::as_str).collect();
                    (link.target.as_str(), rels, link.mime.as_deref(), link.title.as_deref())
                })
                .collect();
            let want: Vec<_> = want.iter().map(|(t, r, m, n)| (*t, r.to_vec(), *m, *n)).collect();
            assert_eq!(told, want, "{header}");
        }
    }
}
