//! `multipart/form-data` (RFC 7578), which PHP's curl sends for an array of fields.
//!
//! Only text fields are read: the file name, type and encoding of a part are ignored, and invalid
//! UTF-8 is replaced.

use bytes::Bytes;
use futures_util::{FutureExt, stream};
use http::header::CONTENT_DISPOSITION;
use multer::{Error, Field, Multipart};

use super::form::{BadForm, Form, MOST_PARAMETERS};

/// Parses a body. `content_type` is the header with the boundary.
pub fn read(content_type: &str, body: &Bytes) -> Result<Form, BadForm> {
    let boundary =
        boundary(content_type).ok_or(BadForm::Multipart("its media type has no boundary"))?;
    let whole = stream::iter([Ok::<_, Error>(body.clone())]);
    let reading = fields(Multipart::new(whole, boundary)).now_or_never();
    // The reader only waits for bytes, and all of them are available, so it completes at once.
    let pairs = reading.unwrap_or(Err(Error::IncompleteStream)).map_err(reason)?;
    Form::from_pairs(pairs.into_iter())
}

/// Reads the text fields, and stops as soon as there are too many.
async fn fields(mut multipart: Multipart<'_>) -> Result<Vec<(String, String)>, Error> {
    let mut pairs = Vec::new();
    while let Some(field) = multipart.next_field().await?
        && pairs.len() <= MOST_PARAMETERS
    {
        let Some(name) = name(&field) else { continue };
        let value = field.bytes().await?;
        pairs.push((name, String::from_utf8_lossy(&value).into_owned()));
    }
    Ok(pairs)
}

fn reason(err: Error) -> BadForm {
    BadForm::Multipart(match err {
        Error::ReadHeaderFailed(_)
        | Error::DecodeHeaderName { .. }
        | Error::DecodeHeaderValue { .. }
        | Error::IncompleteHeaders => "the headers of a part cannot be read",
        _ => "it does not end with its boundary",
    })
}

/// Returns the name of a field. Parsed here because clients write parameters before `name`, quoted
/// or not, whose values look like a name.
fn name(field: &Field<'_>) -> Option<String> {
    let disposition = field.headers().get(CONTENT_DISPOSITION)?;
    parameter(&String::from_utf8_lossy(disposition.as_bytes()), "name")
}

fn boundary(content_type: &str) -> Option<String> {
    parameter(content_type, "boundary").filter(|text| (1..=70).contains(&text.len()))
}

/// Returns a parameter of a header value, quoted or not.
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

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &[u8] = b"preamble\r\n--x y\r\nContent-Disposition: form-data; name=\"hub.mode\"\r\n\
        \r\nsubscribe\r\n--x y\r\ncontent-disposition: form-data; filename=\"a;name=b\"; name=hub.url\r\n\
        Content-Type: text/plain\r\n\r\nline 1\r\nline 2\r\n--x y--\r\n";

    #[test]
    fn fields_are_read() {
        let body = Bytes::from_static(BODY);
        let form = read("multipart/form-data; charset=utf-8; boundary=\"x y\"", &body).unwrap();
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
            ("multipart/form-data; boundary=z", b"--z\r\n: no name\r\n\r\n1\r\n--z--"),
        ];
        for (content_type, body) in cases {
            let body = Bytes::from_static(body);
            assert!(matches!(read(content_type, &body), Err(BadForm::Multipart(_))));
        }
    }
    #[test]
    fn parts_without_a_name_are_passed_over_and_bytes_that_are_no_text_replaced() {
        let body =
            b"--z\r\n\r\nno head\r\n--z\r\nContent-Disposition: form-data\r\n\r\nno name\r\n\
            --z\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n\xff\r\n--z--\r\nepilogue";
        let form = read("multipart/form-data; boundary=z", &Bytes::from_static(body)).unwrap();
        assert_eq!(form.pairs().collect::<Vec<_>>(), [("a", "\u{fffd}")]);
    }

    #[test]
    fn a_thousand_fields_are_enough() {
        let body = |fields: usize| {
            let field = "--z\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n";
            Bytes::from(format!("{}--z--\r\n", field.repeat(fields)))
        };
        let read = |fields| read("multipart/form-data; boundary=z", &body(fields));
        assert_eq!(read(1_000).unwrap().pairs().count(), 1_000);
        assert_eq!(read(1_001), Err(BadForm::TooMany));
        assert_eq!(read(5_000), Err(BadForm::TooMany));
    }
}
