//! XML-RPC calls and responses, parsed leniently and written in a plain form.
//!
//! Real clients leave out types, mix `i4` and `int`, send CDATA, declare charsets they do not use,
//! and speak HTTP/1.0; all of that is accepted. Sizes are bounded (rule S20).

#[cfg(test)]
mod tests;

use base64::Engine;

use super::xml::{self, BadXml, MessageElement, escaped};

/// The maximum number of parameters in a call (rule S20).
pub const MOST_PARAMETERS: usize = 20;
/// The maximum length of a text in a call, in bytes (rule S20).
pub const LONGEST_TEXT_BYTES: usize = 4_096;

/// A value of any XML-RPC type.
#[derive(Clone, Debug, PartialEq)]
pub enum XmlRpcValue {
    /// `int` or `i4`.
    Int(i32),
    /// `i8`, which some clients use for numbers that exceed `int`.
    Long(i64),
    /// `boolean`.
    Boolean(bool),
    /// `string`, or a value without a type.
    Text(String),
    /// `double`.
    Double(f64),
    /// `dateTime.iso8601`, as written: the type has no time zone.
    DateTime(String),
    /// `base64`, decoded.
    Bytes(Vec<u8>),
    /// `array`.
    Array(Vec<XmlRpcValue>),
    /// `struct`, with members in order.
    Struct(Vec<(String, XmlRpcValue)>),
    /// `nil`, an extension.
    Nil,
}

impl XmlRpcValue {
    /// Returns a scalar value as text; `None` for arrays, structs and nil. Some clients send ports
    /// as numbers, others as strings.
    pub fn text(&self) -> Option<String> {
        Some(match self {
            XmlRpcValue::Int(number) => number.to_string(),
            XmlRpcValue::Long(number) => number.to_string(),
            XmlRpcValue::Boolean(yes) => u8::from(*yes).to_string(),
            XmlRpcValue::Text(text) | XmlRpcValue::DateTime(text) => text.clone(),
            XmlRpcValue::Double(number) => number.to_string(),
            XmlRpcValue::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            XmlRpcValue::Array(_) | XmlRpcValue::Struct(_) | XmlRpcValue::Nil => return None,
        })
    }

    /// Returns the member of a struct with this name; `None` for other values.
    pub fn member(&self, name: &str) -> Option<&XmlRpcValue> {
        let XmlRpcValue::Struct(members) = self else { return None };
        members.iter().find(|(held, _)| held == name).map(|(_, value)| value)
    }

    fn write(&self, out: &mut String) {
        out.push_str("<value>");
        match self {
            XmlRpcValue::Int(number) => out.push_str(&format!("<int>{number}</int>")),
            XmlRpcValue::Long(number) => out.push_str(&format!("<i8>{number}</i8>")),
            XmlRpcValue::Boolean(yes) => {
                out.push_str(&format!("<boolean>{}</boolean>", u8::from(*yes)));
            }
            XmlRpcValue::Text(text) => out.push_str(&format!("<string>{}</string>", escaped(text))),
            XmlRpcValue::Double(number) => out.push_str(&format!("<double>{number}</double>")),
            XmlRpcValue::DateTime(text) => {
                out.push_str(&format!("<dateTime.iso8601>{}</dateTime.iso8601>", escaped(text)));
            }
            XmlRpcValue::Bytes(bytes) => {
                let text = base64::engine::general_purpose::STANDARD.encode(bytes);
                out.push_str(&format!("<base64>{text}</base64>"));
            }
            XmlRpcValue::Array(values) => {
                out.push_str("<array><data>");
                values.iter().for_each(|value| value.write(out));
                out.push_str("</data></array>");
            }
            XmlRpcValue::Struct(members) => {
                out.push_str("<struct>");
                for (name, value) in members {
                    out.push_str(&format!("<member><name>{}</name>", escaped(name)));
                    value.write(out);
                    out.push_str("</member>");
                }
                out.push_str("</struct>");
            }
            XmlRpcValue::Nil => out.push_str("<nil/>"),
        }
        out.push_str("</value>");
    }
}

/// A received call.
#[derive(Clone, Debug, PartialEq)]
pub struct XmlRpcCall {
    /// The procedure.
    pub method: String,
    /// The parameters.
    pub params: Vec<XmlRpcValue>,
}

/// A fault reported by the other side.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("fault {code}: {message}")]
pub struct XmlRpcFault {
    /// `faultCode`.
    pub code: i32,
    /// `faultString`.
    pub message: String,
}

/// The reason why bytes are not a call or a response.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadXmlRpc {
    /// The bytes are not well-formed XML.
    #[error("Bad XML-RPC call: {0}.")]
    Xml(#[from] BadXml),
    /// A required element is missing.
    #[error("Bad XML-RPC call, missing \"{0}\" element.")]
    Missing(&'static str),
    /// A value does not match its type.
    #[error("Bad XML-RPC call, \"{text}\" is not a valid {kind}.")]
    Value {
        /// The declared type.
        kind: &'static str,
        /// The value that was sent, truncated.
        text: String,
    },
    /// A limit for calls is exceeded.
    #[error("Bad XML-RPC call, {0}.")]
    TooMuch(&'static str),
}

/// Parses a call.
pub fn read_call(bytes: &[u8]) -> Result<XmlRpcCall, BadXmlRpc> {
    read_long_call(bytes, LONGEST_TEXT_BYTES)
}

/// Parses a call whose texts may be up to `longest` bytes.
pub fn read_long_call(bytes: &[u8], longest: usize) -> Result<XmlRpcCall, BadXmlRpc> {
    let root = xml::read(bytes)?;
    if root.name != "methodCall" {
        return Err(BadXmlRpc::Missing("methodCall"));
    }
    let method = root.child("methodName").ok_or(BadXmlRpc::Missing("methodName"))?;
    let params = root.child("params").map(|params| params.children_named("param"));
    let params: Vec<&MessageElement> = params.into_iter().flatten().collect();
    if params.len() > MOST_PARAMETERS {
        return Err(BadXmlRpc::TooMuch("it has too many parameters"));
    }
    let params =
        params.into_iter().map(|param| read_param(param, longest)).collect::<Result<_, _>>()?;
    Ok(XmlRpcCall { method: method.text.trim().to_owned(), params })
}

/// Parses a response: a value, or the reported fault.
pub fn read_response(bytes: &[u8]) -> Result<Result<XmlRpcValue, XmlRpcFault>, BadXmlRpc> {
    let root = xml::read(bytes)?;
    if root.name != "methodResponse" {
        return Err(BadXmlRpc::Missing("methodResponse"));
    }
    if let Some(fault) = root.child("fault") {
        return read_param(fault, LONGEST_TEXT_BYTES).map(|value| Err(as_fault(&value)));
    }
    let param = root.child("params").and_then(|params| params.child("param"));
    read_param(param.ok_or(BadXmlRpc::Missing("param"))?, LONGEST_TEXT_BYTES).map(Ok)
}

/// Serializes a call of `procedure` with `url` as its only parameter, which is how rssCloud
/// notifies an aggregator of a change (seed 000, "XML-RPC interface").
pub fn call(procedure: &str, url: &str) -> String {
    call_with(procedure, &[XmlRpcValue::Text(url.to_owned())])
}

/// Serializes a call of `procedure` with these parameters.
pub fn call_with(procedure: &str, params: &[XmlRpcValue]) -> String {
    let procedure = escaped(procedure);
    let mut body = format!(
        "<?xml version=\"1.0\"?>\n<methodCall><methodName>{procedure}</methodName><params>"
    );
    for param in params {
        body.push_str("<param>");
        param.write(&mut body);
        body.push_str("</param>");
    }
    body.push_str("</params></methodCall>\n");
    body
}

/// Serializes a response that carries `value`.
pub fn response(value: &XmlRpcValue) -> String {
    let mut body = "<?xml version=\"1.0\"?>\n<methodResponse><params><param>".to_owned();
    value.write(&mut body);
    body.push_str("</param></params></methodResponse>\n");
    body
}

/// Returns the value that describes a fault.
pub fn fault_value(code: i32, message: &str) -> XmlRpcValue {
    XmlRpcValue::Struct(vec![
        ("faultCode".to_owned(), XmlRpcValue::Int(code)),
        ("faultString".to_owned(), XmlRpcValue::Text(message.to_owned())),
    ])
}

/// Serializes a response that reports a fault.
pub fn fault(code: i32, message: &str) -> String {
    let fault = fault_value(code, message);
    let mut body = "<?xml version=\"1.0\"?>\n<methodResponse><fault>".to_owned();
    fault.write(&mut body);
    body.push_str("</fault></methodResponse>\n");
    body
}

fn as_fault(value: &XmlRpcValue) -> XmlRpcFault {
    let code = if let Some(XmlRpcValue::Int(code)) = value.member("faultCode") { *code } else { 0 };
    XmlRpcFault {
        code,
        message: value.member("faultString").and_then(XmlRpcValue::text).unwrap_or_default(),
    }
}

/// Parses the value in a `param` or `fault`. Some clients leave out the `value` element.
fn read_param(param: &MessageElement, longest: usize) -> Result<XmlRpcValue, BadXmlRpc> {
    read_value(param.child("value").unwrap_or(param), longest)
}

fn read_value(value: &MessageElement, longest: usize) -> Result<XmlRpcValue, BadXmlRpc> {
    let Some(typed) = value.children.first() else { return read_text(&value.text, longest) };
    let text = typed.text.trim();
    let bad = |kind| BadXmlRpc::Value { kind, text: text.chars().take(40).collect() };
    Ok(match typed.name.as_str() {
        "int" | "i4" => XmlRpcValue::Int(text.parse().map_err(|_| bad("int"))?),
        "i8" | "i2" | "i1" => XmlRpcValue::Long(text.parse().map_err(|_| bad("i8"))?),
        "boolean" => match text {
            "1" | "true" => XmlRpcValue::Boolean(true),
            "0" | "false" => XmlRpcValue::Boolean(false),
            _ => return Err(bad("boolean")),
        },
        "double" | "float" => XmlRpcValue::Double(text.parse().map_err(|_| bad("double"))?),
        "dateTime.iso8601" | "dateTime" => XmlRpcValue::DateTime(text.to_owned()),
        "base64" => {
            let packed: String = text.chars().filter(|c| !c.is_ascii_whitespace()).collect();
            let bytes = base64::engine::general_purpose::STANDARD.decode(packed);
            XmlRpcValue::Bytes(bytes.map_err(|_| bad("base64"))?)
        }
        "nil" => XmlRpcValue::Nil,
        "array" => {
            let data = typed.child("data").unwrap_or(typed);
            let values = data.children_named("value").map(|value| read_value(value, longest));
            XmlRpcValue::Array(values.collect::<Result<_, _>>()?)
        }
        "struct" => {
            let members = typed.children_named("member").map(|member| {
                let name = member.child("name").map(|name| name.text.trim().to_owned());
                Ok((name.unwrap_or_default(), read_param(member, longest)?))
            });
            XmlRpcValue::Struct(members.collect::<Result<_, BadXmlRpc>>()?)
        }
        _ => read_text(&typed.text, longest)?,
    })
}

fn read_text(text: &str, longest: usize) -> Result<XmlRpcValue, BadXmlRpc> {
    if text.len() > longest {
        return Err(BadXmlRpc::TooMuch("a text in it is too long"));
    }
    Ok(XmlRpcValue::Text(text.to_owned()))
}
