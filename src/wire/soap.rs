//! SOAP 1.1, as rssCloud used it: one call with simple parameters, one answer.
//!
//! Parameters are taken by name or, where names are not the expected ones, by order;
//! the method element may be qualified or not; prefixes and schema years are as every
//! toolkit likes them. Only local names count.

use super::xml::{self, BadXml, Element, escaped, is_name};

/// The namespace of the envelope.
const ENVELOPE: &str = "http://schemas.xmlsoap.org/soap/envelope/";

/// A call as it was received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The procedure: the local name of the first element in the body.
    pub method: String,
    /// Its parameters, by name, in the order written.
    pub params: Vec<(String, Parameter)>,
}

/// What a parameter holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// A text.
    Text(String),
    /// A list of texts.
    List(Vec<String>),
}

impl Parameter {
    /// The text, or the first of a list; empty for an empty list.
    pub fn text(&self) -> &str {
        match self {
            Parameter::Text(text) => text,
            Parameter::List(texts) => texts.first().map_or("", String::as_str),
        }
    }

    /// All texts.
    pub fn texts(&self) -> &[String] {
        match self {
            Parameter::Text(text) => std::slice::from_ref(text),
            Parameter::List(texts) => texts,
        }
    }
}

impl Call {
    /// The parameter with one of these names, in any case; where none has, the one at
    /// `place`, unless its name belongs to another.
    pub fn param(&self, names: &[&str], place: usize) -> Option<&Parameter> {
        let is = |held: &str| names.iter().any(|name| name.eq_ignore_ascii_case(held));
        let named = self.params.iter().find(|(held, _)| is(held));
        named.or_else(|| self.params.get(place)).map(|(_, parameter)| parameter)
    }
}

/// Why bytes are not a SOAP message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadMessage {
    /// Not readable as XML.
    #[error("Bad SOAP call: {0}.")]
    Xml(#[from] BadXml),
    /// An element that must be there is not.
    #[error("Bad SOAP call, missing \"{0}\" element.")]
    Missing(&'static str),
}

/// Whether bytes look like a SOAP envelope rather than an XML-RPC call.
pub fn is_envelope(bytes: &[u8]) -> bool {
    xml::read(bytes).is_ok_and(|root| root.name.eq_ignore_ascii_case("envelope"))
}

/// Reads a call.
pub fn read_call(bytes: &[u8]) -> Result<Call, BadMessage> {
    let body = read_body(bytes)?;
    let method = body.children.first().ok_or(BadMessage::Missing("method"))?;
    let params = method.children.iter();
    let params = params.map(|param| (param.name.clone(), parameter(&body, param))).collect();
    Ok(Call { method: method.name.clone(), params })
}

/// Reads an answer: nothing, or the text of the fault the other side reports.
pub fn read_response(bytes: &[u8]) -> Result<Result<(), String>, BadMessage> {
    let body = read_body(bytes)?;
    Ok(match body.child("Fault") {
        Some(fault) => {
            let text = fault.child("faultstring").or_else(|| fault.child("Reason"));
            Err(text.map(|text| text.text.trim().to_owned()).unwrap_or_default())
        }
        None => Ok(()),
    })
}

/// A call of `procedure` with `url` as its only parameter. The method element stands
/// in no namespace, as in what UserLand's own implementation sent. A procedure that
/// cannot name an element is mended; the door that takes registrations refuses it.
pub fn call(procedure: &str, url: &str) -> String {
    let procedure = if is_name(procedure) { procedure } else { "notify" };
    call_with(procedure, &[("url", Parameter::Text(url.to_owned()))])
}

/// A call of `procedure` with these named parameters; both must be fit to name elements.
pub fn call_with(procedure: &str, params: &[(&str, Parameter)]) -> String {
    let params = params.iter().map(|(name, value)| match value {
        Parameter::Text(text) => {
            format!("<{name} xsi:type=\"xsd:string\">{}</{name}>", escaped(text))
        }
        Parameter::List(texts) => {
            let items = texts
                .iter()
                .map(|text| format!("<item xsi:type=\"xsd:string\">{}</item>", escaped(text)));
            format!("<{name}>{}</{name}>", items.collect::<String>())
        }
    });
    envelope(&format!("<{procedure}>{}</{procedure}>", params.collect::<String>()))
}

/// The answer to a call of `method`: a boolean.
pub fn response(method: &str, result: bool) -> String {
    let method = if is_name(method) { method } else { "call" };
    envelope(&format!(
        "<{method}Response><result xsi:type=\"xsd:boolean\">{}</result></{method}Response>",
        u8::from(result)
    ))
}

/// The answer to a call of `method`: a text.
pub fn text_response(method: &str, result: &str) -> String {
    let method = if is_name(method) { method } else { "call" };
    let result = escaped(result);
    envelope(&format!(
        "<{method}Response><result xsi:type=\"xsd:string\">{result}</result></{method}Response>"
    ))
}

/// The answer to `weblogUpdates.ping`: its two members.
pub fn flerror_response(method: &str, error: bool, message: &str) -> String {
    let method = if is_name(method) { method } else { "call" };
    envelope(&format!(
        "<{method}Response><Result><flerror xsi:type=\"xsd:boolean\">{}</flerror>\
         <message xsi:type=\"xsd:string\">{}</message></Result></{method}Response>",
        u8::from(error),
        escaped(message)
    ))
}

/// An answer that reports an error of the caller's. It is sent with status 500 (SOAP
/// 1.1, section 6.2).
pub fn fault(message: &str) -> String {
    envelope(&format!(
        "<SOAP-ENV:Fault><faultcode>SOAP-ENV:Client</faultcode>\
         <faultstring>{}</faultstring></SOAP-ENV:Fault>",
        escaped(message)
    ))
}

fn envelope(body: &str) -> String {
    format!(
        "<?xml version=\"1.0\"?>\n<SOAP-ENV:Envelope xmlns:SOAP-ENV=\"{ENVELOPE}\" \
         xmlns:xsd=\"http://www.w3.org/2001/XMLSchema\" \
         xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" \
         SOAP-ENV:encodingStyle=\"http://schemas.xmlsoap.org/soap/encoding/\">\
         <SOAP-ENV:Body>{body}</SOAP-ENV:Body></SOAP-ENV:Envelope>\n"
    )
}

fn read_body(bytes: &[u8]) -> Result<Element, BadMessage> {
    let root = xml::read(bytes)?;
    if root.name != "Envelope" {
        return Err(BadMessage::Missing("Envelope"));
    }
    let body = root.children.into_iter().find(|child| child.name == "Body");
    body.ok_or(BadMessage::Missing("Body"))
}

/// What a parameter holds; `href="#id"` leads to an element of the body with that id,
/// as section 5 encoding writes arrays.
fn parameter(body: &Element, param: &Element) -> Parameter {
    let aim = param.attribute("href").and_then(|href| href.strip_prefix('#'));
    let aim = aim.and_then(|id| body.children.iter().find(|at| at.attribute("id") == Some(id)));
    let param = aim.unwrap_or(param);
    let is_list = !param.children.is_empty() || param.attribute("arrayType").is_some();
    if is_list {
        let texts = param.children.iter().map(|item| item.text.trim().to_owned());
        return Parameter::List(texts.collect());
    }
    Parameter::Text(param.text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_read_by_name_or_by_order() {
        let named = "<soap:Envelope xmlns:soap='x'><soap:Header/><soap:Body>
            <m:pleaseNotify xmlns:m='y'><port>80</port><path>/RPC2</path>
            <urlList soapenc:arrayType='xsd:string[2]'><item>http://a.test/1</item>
            <item> http://a.test/2 </item></urlList></m:pleaseNotify></soap:Body></soap:Envelope>";
        let call = read_call(named.as_bytes()).unwrap();
        assert_eq!(call.method, "pleaseNotify");
        assert_eq!(call.param(&["path"], 7).unwrap().text(), "/RPC2");
        assert_eq!(call.param(&["urls"], 2).unwrap().texts().len(), 2);
        assert!(call.param(&["domain"], 5).is_none());
    }

    #[test]
    fn a_list_may_stand_elsewhere_in_the_body() {
        let sent = "<E:Envelope><E:Body><p><urls href='#1'/></p>
            <SOAP-ENC:Array id='1'><i>http://a.test/</i></SOAP-ENC:Array></E:Body></E:Envelope>";
        let call = read_call(sent.as_bytes()).unwrap();
        assert_eq!(call.param(&["urls"], 0).unwrap().texts(), ["http://a.test/"]);
    }

    #[test]
    fn what_is_written_can_be_read() {
        let read = read_call(call("a.b", "http://a.test/?x=1&y=2").as_bytes()).unwrap();
        assert_eq!(read.method, "a.b");
        assert_eq!(read.param(&["url"], 0).unwrap().text(), "http://a.test/?x=1&y=2");

        assert_eq!(read_response(response("a.b", true).as_bytes()), Ok(Ok(())));
        let faulty = read_response(fault("a < b").as_bytes());
        assert_eq!(faulty, Ok(Err("a < b".to_owned())));
        assert!(read_call(call("x><y", "u").as_bytes()).is_ok());
    }

    #[test]
    fn what_is_no_envelope_is_told_apart() {
        assert!(!is_envelope(b"<methodCall/>"));
        assert!(is_envelope(call("a", "b").as_bytes()));
        assert_eq!(read_call(b"<a/>"), Err(BadMessage::Missing("Envelope")));
    }
}
