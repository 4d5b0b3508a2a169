//! SOAP messages of rssCloud: one call with simple parameters, and one response.
//!
//! rssCloud uses SOAP 1.1, and so do the calls that feedgate makes; a call in SOAP 1.2 gets a
//! response in SOAP 1.2. Parameters are matched by name, or by order if the names are not the
//! expected ones. The method element may be qualified or not, and prefixes and schema years may
//! vary by toolkit: only local names are compared.

use super::xml::{self, BadXml, MessageElement, escaped, is_name};

/// The version of SOAP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SoapVersion {
    /// SOAP 1.1, the default for unknown namespaces.
    #[default]
    V11,
    /// SOAP 1.2.
    V12,
}

impl SoapVersion {
    /// Returns the namespace of the envelope.
    pub fn namespace(self) -> &'static str {
        match self {
            SoapVersion::V11 => "http://schemas.xmlsoap.org/soap/envelope/",
            SoapVersion::V12 => "http://www.w3.org/2003/05/soap-envelope",
        }
    }

    /// Returns the media type of messages, without parameters.
    pub fn media_type(self) -> &'static str {
        match self {
            SoapVersion::V11 => "text/xml",
            SoapVersion::V12 => "application/soap+xml",
        }
    }

    /// Returns the `Content-Type` of messages that feedgate sends.
    pub fn content_type(self) -> &'static str {
        match self {
            SoapVersion::V11 => "text/xml; charset=utf-8",
            SoapVersion::V12 => "application/soap+xml; charset=utf-8",
        }
    }

    /// Returns the version of an envelope, by the namespace of its prefix.
    fn from_envelope(envelope: &MessageElement) -> SoapVersion {
        let declared = match envelope.prefix.as_str() {
            "" => envelope.attribute("xmlns"),
            prefix => envelope.attribute(prefix),
        };
        let is_newer = declared.is_some_and(|held| held.trim() == SoapVersion::V12.namespace());
        if is_newer { SoapVersion::V12 } else { SoapVersion::V11 }
    }
}

/// A received call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SoapCall {
    /// The version of SOAP.
    pub version: SoapVersion,
    /// The procedure: the local name of the first element in the body.
    pub method: String,
    /// The parameters with their names, in order.
    pub params: Vec<(String, SoapParameter)>,
}

/// The value of a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SoapParameter {
    /// A text.
    Text(String),
    /// A list of texts.
    List(Vec<String>),
}

impl SoapParameter {
    /// Returns the text, or the first of a list; empty for an empty list.
    pub fn text(&self) -> &str {
        match self {
            SoapParameter::Text(text) => text,
            SoapParameter::List(texts) => texts.first().map_or("", String::as_str),
        }
    }

    /// Returns all texts.
    pub fn texts(&self) -> &[String] {
        match self {
            SoapParameter::Text(text) => std::slice::from_ref(text),
            SoapParameter::List(texts) => texts,
        }
    }
}

impl SoapCall {
    /// Returns the parameter with one of these names, ignoring case; otherwise the one at `place`,
    /// unless its name is that of another parameter.
    pub fn param(&self, names: &[&str], place: usize) -> Option<&SoapParameter> {
        let is = |held: &str| names.iter().any(|name| name.eq_ignore_ascii_case(held));
        let named = self.params.iter().find(|(held, _)| is(held));
        named.or_else(|| self.params.get(place)).map(|(_, parameter)| parameter)
    }
}

/// The reason why bytes are not a SOAP message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadSoap {
    /// The bytes are not well-formed XML.
    #[error("Bad SOAP call: {0}.")]
    Xml(#[from] BadXml),
    /// A required element is missing.
    #[error("Bad SOAP call, missing \"{0}\" element.")]
    Missing(&'static str),
}

/// Returns whether the bytes look like a SOAP envelope, not an XML-RPC call.
pub fn is_envelope(bytes: &[u8]) -> bool {
    xml::read(bytes).is_ok_and(|root| root.name.eq_ignore_ascii_case("envelope"))
}

/// Returns the SOAP version of a message, even if the message is not a valid call.
pub fn version(bytes: &[u8]) -> SoapVersion {
    xml::read(bytes).map_or(SoapVersion::V11, |root| SoapVersion::from_envelope(&root))
}

/// Parses a call.
pub fn read_call(bytes: &[u8]) -> Result<SoapCall, BadSoap> {
    let (version, body) = read_body(bytes)?;
    let method = body.children.first().ok_or(BadSoap::Missing("method"))?;
    let params = method.children.iter();
    let params = params.map(|param| (param.name.clone(), parameter(&body, param))).collect();
    Ok(SoapCall { version, method: method.name.clone(), params })
}

/// Parses a response: success, or the text of the reported fault.
pub fn read_response(bytes: &[u8]) -> Result<Result<(), String>, BadSoap> {
    let (_, body) = read_body(bytes)?;
    Ok(match body.child("Fault") {
        Some(fault) => {
            let newer = || fault.child("Reason").map(|why| why.child("Text").unwrap_or(why));
            let text = fault.child("faultstring").or_else(newer);
            Err(text.map(|text| text.text.trim().to_owned()).unwrap_or_default())
        }
        None => Ok(()),
    })
}

/// Serializes a call of `procedure` with `url` as its only parameter. The method element is in no
/// namespace, as in the calls of UserLand's implementation. A procedure that is not a valid element
/// name is corrected; the registration endpoint refuses such a name.
pub fn call(procedure: &str, url: &str) -> String {
    let procedure = if is_name(procedure) { procedure } else { "notify" };
    call_with(procedure, &[("url", SoapParameter::Text(url.to_owned()))])
}

/// Serializes a call of `procedure` with named parameters. All names must be valid element names.
pub fn call_with(procedure: &str, params: &[(&str, SoapParameter)]) -> String {
    let params = params.iter().map(|(name, value)| match value {
        SoapParameter::Text(held) => text(name, held),
        SoapParameter::List(texts) => {
            let items: String = texts.iter().map(|item| text("item", item)).collect();
            format!("<{name}>{items}</{name}>")
        }
    });
    let call = format!("<{procedure}>{}</{procedure}>", params.collect::<String>());
    envelope(SoapVersion::V11, &call)
}

/// Serializes the response to a call of `method`: a boolean.
pub fn response(version: SoapVersion, method: &str, result: bool) -> String {
    let result = u8::from(result);
    method_response(version, method, &format!("<result xsi:type=\"xsd:boolean\">{result}</result>"))
}

/// Serializes the response to a call of `method`: a text.
pub fn text_response(version: SoapVersion, method: &str, result: &str) -> String {
    method_response(version, method, &text("result", result))
}

/// Serializes the response to a call of `method`: a list of texts.
pub fn list_response(version: SoapVersion, method: &str, result: &[&str]) -> String {
    let items: String = result.iter().map(|item| text("item", item)).collect();
    method_response(version, method, &format!("<result>{items}</result>"))
}

/// Serializes the response to `weblogUpdates.ping` with its two members.
pub fn flerror_response(version: SoapVersion, method: &str, error: bool, message: &str) -> String {
    let (error, message) = (u8::from(error), text("message", message));
    let flerror = format!("<flerror xsi:type=\"xsd:boolean\">{error}</flerror>");
    method_response(version, method, &format!("<Result>{flerror}{message}</Result>"))
}

/// The side that caused a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SoapFaultCause {
    /// The message is wrong, and repeating it does not help.
    Client,
    /// The message could not be processed, and may succeed later.
    Server,
}

impl SoapFaultCause {
    /// Returns the word for the fault (SOAP 1.1, section 4.4.1; SOAP 1.2, part 1, `#faultcodes`).
    fn word(self, version: SoapVersion) -> &'static str {
        match (version, self) {
            (SoapVersion::V11, SoapFaultCause::Client) => "Client",
            (SoapVersion::V11, SoapFaultCause::Server) => "Server",
            (SoapVersion::V12, SoapFaultCause::Client) => "Sender",
            (SoapVersion::V12, SoapFaultCause::Server) => "Receiver",
        }
    }
}

/// Serializes a fault. It is sent with status 500 in SOAP 1.1 (section 6.2), and with 400 in SOAP 1.2
/// if the client caused it, else with 500 (part 2, `#http-reqbindwaitstate`).
pub fn fault(version: SoapVersion, cause: SoapFaultCause, message: &str) -> String {
    let (message, code) = (escaped(message), cause.word(version));
    let fault = match version {
        SoapVersion::V11 => {
            format!("<faultcode>SOAP-ENV:{code}</faultcode><faultstring>{message}</faultstring>")
        }
        SoapVersion::V12 => format!(
            "<SOAP-ENV:Code><SOAP-ENV:Value>SOAP-ENV:{code}</SOAP-ENV:Value></SOAP-ENV:Code>\
             <SOAP-ENV:Reason><SOAP-ENV:Text xml:lang=\"en\">{message}</SOAP-ENV:Text>\
             </SOAP-ENV:Reason>"
        ),
    };
    envelope(version, &format!("<SOAP-ENV:Fault>{fault}</SOAP-ENV:Fault>"))
}

fn text(name: &str, text: &str) -> String {
    format!("<{name} xsi:type=\"xsd:string\">{}</{name}>", escaped(text))
}

fn method_response(version: SoapVersion, method: &str, inside: &str) -> String {
    let method = if is_name(method) { method } else { "call" };
    envelope(version, &format!("<{method}Response>{inside}</{method}Response>"))
}

/// SOAP 1.2 does not allow `encodingStyle` on the envelope.
fn envelope(version: SoapVersion, body: &str) -> String {
    let encoding = match version {
        SoapVersion::V11 => " SOAP-ENV:encodingStyle=\"http://schemas.xmlsoap.org/soap/encoding/\"",
        SoapVersion::V12 => "",
    };
    format!(
        "<?xml version=\"1.0\"?>\n<SOAP-ENV:Envelope xmlns:SOAP-ENV=\"{}\" \
         xmlns:xsd=\"http://www.w3.org/2001/XMLSchema\" \
         xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\"{encoding}>\
         <SOAP-ENV:Body>{body}</SOAP-ENV:Body></SOAP-ENV:Envelope>\n",
        version.namespace()
    )
}

fn read_body(bytes: &[u8]) -> Result<(SoapVersion, MessageElement), BadSoap> {
    let root = xml::read(bytes)?;
    if root.name != "Envelope" {
        return Err(BadSoap::Missing("Envelope"));
    }
    let version = SoapVersion::from_envelope(&root);
    let body = root.children.into_iter().find(|child| child.name == "Body");
    Ok((version, body.ok_or(BadSoap::Missing("Body"))?))
}

/// Returns the value of a parameter. `href="#id"` refers to an element of the body with that id, as
/// section 5 encoding writes arrays.
fn parameter(body: &MessageElement, param: &MessageElement) -> SoapParameter {
    let aim = param.attribute("href").and_then(|href| href.strip_prefix('#'));
    let aim = aim.and_then(|id| body.children.iter().find(|at| at.attribute("id") == Some(id)));
    let param = aim.unwrap_or(param);
    let is_list = !param.children.is_empty() || param.attribute("arrayType").is_some();
    if is_list {
        let texts = param.children.iter().map(|item| item.text.trim().to_owned());
        return SoapParameter::List(texts.collect());
    }
    SoapParameter::Text(param.text.trim().to_owned())
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

        for version in [SoapVersion::V11, SoapVersion::V12] {
            let reply = response(version, "a.b", true);
            assert_eq!(read_response(reply.as_bytes()), Ok(Ok(())), "{reply}");
            let faulty = fault(version, SoapFaultCause::Client, "a < b");
            assert_eq!(read_response(faulty.as_bytes()), Ok(Err("a < b".to_owned())), "{faulty}");
            assert_eq!([reply, faulty].map(|held| super::version(held.as_bytes())), [version; 2]);
        }
        assert!(read_call(call("x><y", "u").as_bytes()).is_ok());
    }

    #[test]
    fn the_version_is_what_the_prefix_of_the_envelope_stands_for() {
        let newer = SoapVersion::V12.namespace();
        #[rustfmt::skip]
        let cases = [
            (format!("<e:Envelope xmlns:e='{newer}'/>"),                        SoapVersion::V12),
            (format!("<Envelope xmlns='{newer}'/>"),                            SoapVersion::V12),
            (format!("<e:Envelope xmlns:e='{}'/>", SoapVersion::V11.namespace()),   SoapVersion::V11),
            (format!("<e:Envelope xmlns:e='x' xmlns:other='{newer}'/>"),        SoapVersion::V11),
            ("<Envelope/>".to_owned(),                                          SoapVersion::V11),
            ("no XML".to_owned(),                                               SoapVersion::V11),
        ];
        for (sent, want) in cases {
            assert_eq!(version(sent.as_bytes()), want, "{sent}");
        }
    }

    #[test]
    fn what_is_no_envelope_is_told_apart() {
        assert!(!is_envelope(b"<methodCall/>"));
        assert!(is_envelope(call("a", "b").as_bytes()));
        assert_eq!(read_call(b"<a/>"), Err(BadSoap::Missing("Envelope")));
    }

    #[test]
    fn t11_a_fault_names_the_side_that_caused_it() {
        #[rustfmt::skip]
        let cases = [
            (SoapVersion::V11, SoapFaultCause::Client, "<faultcode>SOAP-ENV:Client</faultcode>"),
            (SoapVersion::V11, SoapFaultCause::Server, "<faultcode>SOAP-ENV:Server</faultcode>"),
            (SoapVersion::V12, SoapFaultCause::Client, "<SOAP-ENV:Value>SOAP-ENV:Sender</SOAP-ENV:Value>"),
            (SoapVersion::V12, SoapFaultCause::Server, "<SOAP-ENV:Value>SOAP-ENV:Receiver</SOAP-ENV:Value>"),
        ];
        for (version, cause, want) in cases {
            let fault = fault(version, cause, "no");
            assert!(fault.contains(want), "{fault}");
        }
    }
}
