//! Any bytes, as a message of the protocols strangers speak: nothing panics, and what
//! was understood says the same once it has been written and read again. Also the headers
//! of an answer that say when to come back: nobody is believed for longer than a day.
//!
//! The first byte chooses the protocol.
#![no_main]

use std::time::{Duration, SystemTime};

use feedgate::net::freshness;
use feedgate_protocol::form::Form;
use feedgate_protocol::signature::{self, SignatureMethod};
use feedgate_protocol::xml::{self, BadXml};
use feedgate_protocol::xmlrpc::XmlRpcValue;
use feedgate_protocol::{multipart, soap, xmlrpc};
use http::header::{AGE, CACHE_CONTROL, DATE, EXPIRES, LAST_MODIFIED, RETRY_AFTER};
use http::{HeaderMap, HeaderValue};
use libfuzzer_sys::fuzz_target;
use url::form_urlencoded;

const BOUNDARY: &str = "----feedgate-fuzz-7d93b1";

fuzz_target!(|data: &[u8]| {
    let Some((choice, bytes)) = data.split_first() else { return };
    match choice % 7 {
        0 => xml_rpc(bytes),
        1 => soap(bytes),
        2 => form(Form::from_urlencoded(bytes).ok()),
        3 => form(Form::from_json(bytes).ok()),
        4 => multipart(bytes),
        5 => signature(bytes),
        _ => headers(bytes),
    }
});

fn xml_rpc(bytes: &[u8]) {
    let called = xmlrpc::read_call(bytes).map(|call| {
        if let Some(XmlRpcValue::Text(url)) = call.params.first() {
            let again = xmlrpc::call(&call.method, url);
            let again = xmlrpc::read_call(again.as_bytes()).expect("our own call can be read");
            assert_eq!(again.method, carried(&call.method).trim());
            assert_eq!(again.params, [XmlRpcValue::Text(carried(url))]);
        }
        call.params
    });
    let answered = match xmlrpc::read_response(bytes) {
        Ok(Ok(value)) => vec![value],
        Ok(Err(fault)) => {
            let again = xmlrpc::fault(fault.code, &carried(&fault.message));
            let again = xmlrpc::read_response(again.as_bytes()).expect("our fault can be read");
            let again = again.expect_err("a fault stays a fault");
            assert_eq!((again.code, again.message), (fault.code, carried(&fault.message)));
            Vec::new()
        }
        Err(_) => Vec::new(),
    };
    for value in called.into_iter().flatten().chain(answered) {
        match xmlrpc::read_response(xmlrpc::response(&value).as_bytes()) {
            Ok(again) => same(&value, &again.expect("a value is no fault")),
            // What was read without its `value` elements is nested deeper when written.
            Err(xmlrpc::BadXmlRpc::Xml(BadXml::TooMuch)) => {}
            Err(err) => panic!("our own answer cannot be read: {err}"),
        }
    }
}

fn same(sent: &XmlRpcValue, read: &XmlRpcValue) {
    match (sent, read) {
        (XmlRpcValue::Text(sent), XmlRpcValue::Text(read)) => assert_eq!(carried(sent), *read),
        (XmlRpcValue::DateTime(sent), XmlRpcValue::DateTime(read)) => assert_eq!(carried(sent).trim(), read),
        (XmlRpcValue::Double(sent), XmlRpcValue::Double(read)) if sent.is_nan() => assert!(read.is_nan()),
        (XmlRpcValue::Array(sent), XmlRpcValue::Array(read)) => {
            assert_eq!(sent.len(), read.len());
            sent.iter().zip(read).for_each(|(sent, read)| same(sent, read));
        }
        (XmlRpcValue::Struct(sent), XmlRpcValue::Struct(read)) => {
            assert_eq!(sent.len(), read.len());
            for ((sent_name, sent), (name, read)) in sent.iter().zip(read) {
                assert_eq!(carried(sent_name).trim(), name);
                same(sent, read);
            }
        }
        (sent, read) => assert_eq!(sent, read),
    }
}

fn soap(bytes: &[u8]) {
    let texts = match soap::read_call(bytes) {
        Ok(call) => call
            .params
            .iter()
            .map(|(_, held)| (call.method.clone(), held.text().to_owned()))
            .collect(),
        Err(_) => Vec::new(),
    };
    for (method, text) in texts {
        let again = soap::read_call(soap::call(&method, &text).as_bytes());
        let again = again.expect("our own call can be read");
        assert_eq!(again.param(&["url"], 0).expect("it has one").text(), carried(&text).trim());
        if xml::is_name(&method) {
            assert_eq!(again.method, method);
        }
        let answer = soap::response(soap::SoapVersion::V11, &method, true);
        assert_eq!(soap::read_response(answer.as_bytes()), Ok(Ok(())));
    }
    if let Ok(Err(message)) = soap::read_response(bytes) {
        let again = soap::read_response(soap::fault(soap::SoapVersion::V12, soap::SoapFaultCause::Server, &message).as_bytes());
        assert_eq!(again, Ok(Err(carried(&message).trim().to_owned())));
    }
}

/// Text without what XML cannot carry.
fn carried(text: &str) -> String {
    let lost = |c: char| matches!(c, '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}');
    text.chars().filter(|c| !lost(*c)).collect()
}

fn form(read: Option<Form>) {
    let Some(form) = read else { return };
    let named = || form.pairs().filter(|(name, _)| !name.is_empty());
    let text: String =
        form_urlencoded::Serializer::new(String::new()).extend_pairs(named()).finish();
    let again = Form::from_urlencoded(text.as_bytes()).expect("no more than before");
    assert!(again.pairs().eq(named()), "as a urlencoded form");

    let plain = |(name, value): &(&str, &str)| {
        let is_odd = |c: char| c.is_control() || c == '"';
        !name.is_empty()
            && name.trim() == *name
            && !name.contains(is_odd)
            && ![name, value].iter().any(|text| text.contains(BOUNDARY))
    };
    let plain = || form.pairs().filter(plain);
    let mut body = String::new();
    for (name, value) in plain() {
        body += &format!(
            "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n"
        );
    }
    body += &format!("--{BOUNDARY}--\r\n");
    let content_type = format!("multipart/form-data; boundary={BOUNDARY}");
    let again = multipart::read(&content_type, &body.into());
    assert!(again.expect("our own body can be read").pairs().eq(plain()), "as a multipart form");
}

/// The header's value, then the body, parted by a line's end.
fn multipart(bytes: &[u8]) {
    let end = bytes.iter().position(|b| *b == b'\n').unwrap_or(bytes.len());
    let (header, body) = bytes.split_at(end);
    let header = String::from_utf8_lossy(header);
    let body = body.get(1..).unwrap_or_default().to_vec();
    form(multipart::read(&header, &body.into()).ok());
}

/// The secret, then the body, parted by a line's end.
fn signature(bytes: &[u8]) {
    let end = bytes.iter().position(|b| *b == b'\n').unwrap_or(bytes.len());
    let (secret, body) = bytes.split_at(end);
    let secret = String::from_utf8_lossy(secret);
    let header = String::from_utf8_lossy(body);
    signature::holds(&header, &secret, body);
    for word in ["sha1", "sha256", "sha384", "sha512"] {
        let Some(method) = SignatureMethod::from_word(word) else { continue };
        let signed = signature::sign(method, &secret, body);
        assert!(signature::holds(&signed, &secret, body), "{word}");
        assert!(!signature::holds(&signed, &format!("{secret}x"), body), "{word}, another secret");
    }
}

/// Values of headers, a line each; the first byte of a line chooses the header.
fn headers(bytes: &[u8]) {
    let names = [DATE, EXPIRES, LAST_MODIFIED, RETRY_AFTER, CACHE_CONTROL, AGE];
    let mut headers = HeaderMap::new();
    for line in bytes.split(|byte| *byte == b'\n').take(16) {
        let Some((choice, value)) = line.split_first() else { continue };
        let Ok(value) = HeaderValue::from_bytes(value) else { continue };
        headers.append(&names[usize::from(*choice) % names.len()], value);
    }
    let noon = SystemTime::UNIX_EPOCH + Duration::from_secs(784_123_200);
    for received in [SystemTime::UNIX_EPOCH, noon] {
        let hints = [
            freshness::hint_s(&headers, received),
            freshness::retry_after_s(&headers, received),
        ];
        assert!(hints.iter().flatten().all(|hint| *hint <= 86_400), "{headers:?}: {hints:?}");
        freshness::is_from_the_future(&headers, received);
    }
}
