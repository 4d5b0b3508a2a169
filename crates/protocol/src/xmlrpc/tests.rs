//! Calls and responses of real clients.

use super::*;

fn param(value: &str) -> Result<XmlRpcValue, BadXmlRpc> {
    let call = format!(
        "<?xml version='1.0'?>\n<methodCall> <methodName> a.b </methodName>
             <params><param>{value}</param></params></methodCall>"
    );
    read_call(call.as_bytes()).map(|mut call| call.params.remove(0))
}

#[test]
fn values_of_all_types_are_read() {
    let text = |text: &str| XmlRpcValue::Text(text.to_owned());
    #[rustfmt::skip]
    let cases = [
        ("<value>a &amp; b</value>",                        text("a & b")),
        ("<value> <string> kept </string> </value>",        text(" kept ")),
        ("<value><![CDATA[http://a.test/?a=1&b=2]]></value>", text("http://a.test/?a=1&b=2")),
        ("<value><string/></value>",                        text("")),
        ("<value/>",                                        text("")),
        ("<string>no value element</string>",               text("no value element")),
        ("<value><i4> 80 </i4></value>",                    XmlRpcValue::Int(80)),
        ("<value><int>-1</int></value>",                    XmlRpcValue::Int(-1)),
        ("<value><ex:i8>8589934592</ex:i8></value>",        XmlRpcValue::Long(8_589_934_592)),
        ("<value><boolean>1</boolean></value>",             XmlRpcValue::Boolean(true)),
        ("<value><double>1.5</double></value>",             XmlRpcValue::Double(1.5)),
        ("<value><base64>aGk=\n</base64></value>",          XmlRpcValue::Bytes(b"hi".to_vec())),
        ("<value><nil/></value>",                           XmlRpcValue::Nil),
        ("<value><array><data><value>a</value><value><int>1</int></value></data></array></value>",
            XmlRpcValue::Array(vec![text("a"), XmlRpcValue::Int(1)])),
        ("<value><struct><member><name>n</name><value>v</value></member></struct></value>",
            XmlRpcValue::Struct(vec![("n".to_owned(), text("v"))])),
    ];
    for (sent, want) in cases {
        assert_eq!(param(sent), Ok(want), "{sent}");
    }
}

#[test]
fn values_that_are_none_are_refused() {
    let long = format!("<value>{}</value>", "x".repeat(LONGEST_TEXT_BYTES + 1));
    let cases = [
        "<value><int>2147483648</int></value>",
        "<value><int>8o</int></value>",
        "<value><boolean>yes</boolean></value>",
        "<value><base64>*</base64></value>",
        long.as_str(),
    ];
    for sent in cases {
        assert!(param(sent).is_err(), "{sent}");
    }
    let many = format!(
        "<methodCall><methodName>a</methodName><params>{}</params></methodCall>",
        "<param><value/></param>".repeat(MOST_PARAMETERS + 1)
    );
    assert!(matches!(read_call(many.as_bytes()), Err(BadXmlRpc::TooMuch(_))));
}

#[test]
fn what_is_missing_is_named() {
    #[rustfmt::skip]
    let cases = [
        ("<methodResponse/>", "Bad XML-RPC call, missing \"methodCall\" element."),
        ("<methodCall/>",     "Bad XML-RPC call, missing \"methodName\" element."),
        ("",                  "Bad XML-RPC call: the body is empty."),
    ];
    for (sent, want) in cases {
        assert_eq!(read_call(sent.as_bytes()).unwrap_err().to_string(), want);
    }
}

#[test]
fn what_is_written_can_be_read() {
    let sent = call("a.<b>", "http://a.test/?x=1&y=2");
    let read = read_call(sent.as_bytes()).unwrap();
    assert_eq!(read.method, "a.<b>");
    assert_eq!(read.params, [XmlRpcValue::Text("http://a.test/?x=1&y=2".to_owned())]);

    let value = XmlRpcValue::Struct(vec![
        ("flerror".to_owned(), XmlRpcValue::Boolean(true)),
        (
            "list".to_owned(),
            XmlRpcValue::Array(vec![
                XmlRpcValue::Int(1),
                XmlRpcValue::Nil,
                XmlRpcValue::Double(0.5),
            ]),
        ),
        ("raw".to_owned(), XmlRpcValue::Bytes(vec![0, 255])),
    ]);
    assert_eq!(read_response(response(&value).as_bytes()), Ok(Ok(value)));

    let read = read_response(fault(4, "no <such> thing").as_bytes()).unwrap().unwrap_err();
    assert_eq!(read, XmlRpcFault { code: 4, message: "no <such> thing".to_owned() });
}
