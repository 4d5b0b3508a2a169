//! `multipart/form-data` (RFC 7578), which PHP's curl sends for an array of fields.
//!
//! Only text fields are of use here: a part's file name, type and encoding are not
//! looked at, and what is not UTF-8 is replaced.

use super::form::{BadForm, Form};

/// Reads a body; `content_type` is the header that names its boundary.
pub fn read(content_type: &str, body: &[u8]) -> Result<Form, BadForm> {
    let boundary = boundary(content_type).ok_or(BadForm::Multipart("it names no boundary"))?;
    let delimiter = format!("--{boundary}");
    let mut parts = split(body, delimiter.as_bytes()).into_iter().skip(1);
    let mut pairs = Vec::new();
    for part in parts.by_ref() {
        if part.starts_with(b"--") {
            return Form::of(pairs.into_iter());
        }
        pairs.extend(field(part));
    }
    Err(BadForm::Multipart("it does not end with its boundary"))
}

fn boundary(content_type: &str) -> Option<String> {
    parameter(content_type, "boundary").filter(|text| (1..=70).contains(&text.len()))
}

/// A parameter of a header's value, quoted or not.
fn parameter(value: &str, name: &str) -> Option<String> {
    let (_, mut rest) = value.split_once(';')?;
    loop {
        let (held, after) = rest.split_once('=')?;
        let after = after.trim_start();
        let (found, behind) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"')?,
            None => after.split_at(after.find(';').unwrap_or(after.len())),
        };
        if held.trim().eq_ignore_ascii_case(name) {
            return Some(found.trim().to_owned());
        }
        rest = behind.split_once(';')?.1;
    }
}

fn field(part: &[u8]) -> Option<(String, String)> {
    let part = part.strip_prefix(b"\r\n").or_else(|| part.strip_prefix(b"\n"))?;
    let (head, body) = cut(part, b"\r\n\r\n").or_else(|| cut(part, b"\n\n"))?;
    let body = body.strip_suffix(b"\r\n").or_else(|| body.strip_suffix(b"\n")).unwrap_or(body);
    let head = String::from_utf8_lossy(head);
    let disposition = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.trim().eq_ignore_ascii_case("content-disposition").then_some(value)
    })?;
    Some((parameter(disposition, "name")?, String::from_utf8_lossy(body).into_owned()))
}

fn cut<'a>(bytes: &'a [u8], at: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let place = bytes.windows(at.len()).position(|window| window == at)?;
    Some((&bytes[..place], &bytes[place + at.len()..]))
}

fn split<'a>(mut bytes: &'a [u8], at: &[u8]) -> Vec<&'a [u8]> {
    let mut parts = Vec::new();
    while let Some((part, rest)) = cut(bytes, at) {
        parts.push(part);
        bytes = rest;
    }
    parts.push(bytes);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &[u8] = b"preamble\r\n--x y\r\nContent-Disposition: form-data; name=\"hub.mode\"\r\n\
        \r\nsubscribe\r\n--x y\r\ncontent-disposition: form-data; filename=\"a;name=b\"; name=hub.url\r\n\
        Content-Type: text/plain\r\n\r\nline 1\r\nline 2\r\n--x y--\r\n";

    #[test]
    fn fields_are_read() {
        let form = read("multipart/form-data; charset=utf-8; boundary=\"x y\"", BODY).unwrap();
        assert_eq!(form.get("hub.mode"), Some("subscribe"));
        assert_eq!(form.get_verbatim("hub.url"), Some("line 1\r\nline 2"));
    }

    #[test]
    fn what_is_no_multipart_form_is_refused() {
        let cases = [
            ("multipart/form-data", BODY),
            ("multipart/form-data; boundary=", BODY),
            ("multipart/form-data; boundary=\"x y\"", &BODY[..60]),
            ("multipart/form-data; boundary=z", b""),
        ];
        for (content_type, body) in cases {
            assert!(matches!(read(content_type, body), Err(BadForm::Multipart(_))));
        }
    }
}
