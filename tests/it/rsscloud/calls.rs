//! Calls are answered in the protocol that they are in, and in its version.

use feedgate_protocol::soap::SoapVersion;
use feedgate_protocol::xmlrpc::XmlRpcValue;
use feedgate_protocol::{soap, xmlrpc};
use http::StatusCode;
use serde_json::json;

use crate::support::server::client;
use crate::support::world::World;

/// The answer to this body: status code, `Content-Type`, and text.
async fn post(world: &World, content_type: &str, body: &str) -> (StatusCode, String, String) {
    let request = client().post(world.gateway.url("/RPC2")).body(body.to_owned());
    let request = match content_type {
        "" => request,
        content_type => request.header("content-type", content_type),
    };
    let answer = request.send().await.unwrap();
    let content_type = answer.headers()["content-type"].to_str().unwrap().to_owned();
    (answer.status(), content_type, answer.text().await.unwrap())
}

fn envelope(version: SoapVersion, inside: &str) -> String {
    let namespace = version.namespace();
    format!("<e:Envelope xmlns:e=\"{namespace}\"><e:Body>{inside}</e:Body></e:Envelope>")
}

#[tokio::test]
async fn who_calls_in_soap_1_2_is_answered_in_it() {
    let world = World::with_tides(2, &[]).await;
    let (older, newer) = (SoapVersion::V11, SoapVersion::V12);
    let ping = format!("<ping><url>{}</url></ping>", world.topic);
    let register = format!(
        "<pleaseNotify><p></p><port>{}</port><path>/cb</path><protocol>http-post</protocol>\
         <urls><url>{}</url></urls></pleaseNotify>",
        world.subscriber.port(),
        world.topic
    );
    let weblog = "<ping><weblogname>A</weblogname><weblogurl>http://a.test/</weblogurl></ping>";
    #[rustfmt::skip]
    let cases = [
        (newer, newer.media_type(), register.as_str(),            200, "<result xsi:type=\"xsd:boolean\">1"),
        (newer, newer.media_type(), ping.as_str(),                200, "<result xsi:type=\"xsd:boolean\">1"),
        (newer, "",                 weblog,                       200, "Thanks for the ping."),
        (newer, newer.media_type(), "<listMethods/>",             200, "rssCloud.saveRss"),
        (newer, newer.media_type(), "<nothing/>",                 400, "SOAP-ENV:Sender"),
        (newer, newer.media_type(), "<unclosed>",                 400, "SOAP-ENV:Sender"),
        (older, older.media_type(), ping.as_str(),                200, "<result xsi:type=\"xsd:boolean\">1"),
        (older, older.media_type(), "<nothing/>",                 500, "SOAP-ENV:Client"),
    ];
    for (version, content_type, inside, status, words) in cases {
        let (got, told, text) = post(&world, content_type, &envelope(version, inside)).await;
        assert!(got.as_u16() == status && text.contains(words), "{inside}: {got} {text}");
        assert_eq!(told, version.content_type(), "{inside}");
        assert_eq!(soap::version(text.as_bytes()), version, "{text}");
        assert_eq!(soap::read_response(text.as_bytes()).unwrap().is_ok(), status == 200, "{text}");
    }
}

#[tokio::test]
async fn s20_a_call_that_is_too_long_is_refused_in_its_own_protocol() {
    const WHY: &str = "The body is longer than 65536 bytes.";
    let world = World::with_tides(2, &[]).await;
    let padding = " ".repeat(200_000);
    for value in ["tides", "Envelopes and stamps"] {
        let call = format!(
            "\u{feff}<methodCall><methodName>rssCloud.ping</methodName><params><param><value>{value}\
             </value></param></params>{padding}</methodCall>"
        );
        let (status, told, text) = post(&world, "text/xml", &call).await;
        assert_eq!((status, told.as_str()), (StatusCode::OK, "text/xml; charset=utf-8"));
        assert_eq!(xmlrpc::read_response(text.as_bytes()).unwrap().unwrap_err().message, WHY);
    }
    for (version, status) in [(SoapVersion::V11, 500), (SoapVersion::V12, 400)] {
        let long = envelope(version, &format!("<ping>{padding}</ping>"));
        for content_type in ["", version.media_type()] {
            let (got, told, text) = post(&world, content_type, &long).await;
            assert_eq!((got.as_u16(), told.as_str()), (status, version.content_type()));
            assert_eq!(soap::read_response(text.as_bytes()), Ok(Err(WHY.to_owned())), "{text}");
        }
    }
    let (status, ..) = post(&world, "", &padding).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE, "it is no call");
}

/// The value in the answer to this call, or its fault.
async fn call(world: &World, method: &str, params: &[XmlRpcValue]) -> Result<XmlRpcValue, String> {
    let (status, _, text) = post(world, "text/xml", &xmlrpc::call_with(method, params)).await;
    assert_eq!(status, StatusCode::OK);
    xmlrpc::read_response(text.as_bytes()).unwrap().map_err(|fault| fault.message)
}

fn text(text: &str) -> XmlRpcValue {
    XmlRpcValue::Text(text.to_owned())
}

#[tokio::test]
async fn a12_every_procedure_is_described() {
    let world = World::with_tides(2, &[]).await;
    let XmlRpcValue::Array(names) = call(&world, "system.listMethods", &[]).await.unwrap() else {
        panic!("no array")
    };
    assert_eq!(names.len(), 10);
    for name in &names {
        let params = std::slice::from_ref(name);
        let help = call(&world, "system.methodHelp", params).await.unwrap().text().unwrap();
        assert!(help.ends_with('.'), "{help}");
        let ways = call(&world, "system.methodSignature", params).await.unwrap();
        assert!(matches!(ways, XmlRpcValue::Array(ways) if !ways.is_empty()), "{name:?}");
    }
    let of_ping = XmlRpcValue::Array(vec![text("boolean"), text("string")]);
    let ways = call(&world, "system.methodSignature", &[text("myCloud.ping")]).await;
    assert_eq!(ways, Ok(XmlRpcValue::Array(vec![of_ping])), "by any name that can be called");
    let unknown = call(&world, "system.methodHelp", &[text("rssCloud.dance")]).await;
    assert!(unknown.unwrap_err().contains("is not defined"));
    let (_, _, help) = post(
        &world,
        "text/xml",
        &envelope(SoapVersion::V11, "<methodHelp><name>rssCloud.ping</name></methodHelp>"),
    )
    .await;
    assert!(help.contains("has changed"), "{help}");
}

#[tokio::test]
async fn a12_several_calls_are_one_call_and_each_has_its_own_result() {
    let world = World::with_tides(2, &[]).await;
    let single = |method: &str, params: Vec<XmlRpcValue>| {
        XmlRpcValue::Struct(vec![
            ("methodName".to_owned(), text(method)),
            ("params".to_owned(), XmlRpcValue::Array(params)),
        ])
    };
    let calls = vec![
        single("rssCloud.hello", vec![]),
        single("rssCloud.dance", vec![]),
        single("rssCloud.ping", vec![text(&world.topic)]),
        single("system.multicall", vec![XmlRpcValue::Array(vec![])]),
        XmlRpcValue::Struct(vec![]),
        text("rssCloud.hello"),
    ];
    let answer = call(&world, "system.multicall", &[XmlRpcValue::Array(calls)]).await.unwrap();
    let XmlRpcValue::Array(results) = answer else { panic!("{answer:?}") };
    let done = XmlRpcValue::Array(vec![XmlRpcValue::Boolean(true)]);
    let message = |result: &XmlRpcValue| {
        let fault = result.member("faultString").and_then(XmlRpcValue::text);
        fault.filter(|_| result.member("faultCode") == Some(&XmlRpcValue::Int(4)))
    };
    #[rustfmt::skip]
    let want = [
        None,
        Some("is not defined"),
        None,
        Some("inside of system.multicall"),
        Some("methodName and an array params"),
        Some("methodName and an array params"),
    ];
    assert_eq!(results.len(), want.len());
    for (result, want) in results.iter().zip(want) {
        match want {
            None => assert_eq!(result, &done),
            Some(words) => assert!(message(result).unwrap().contains(words), "{result:?}"),
        }
    }
    let too_many = vec![single("rssCloud.hello", vec![]); 21];
    for (params, words) in [
        (vec![XmlRpcValue::Array(too_many)], "more than 20"),
        (vec![text("rssCloud.hello")], "array of structs"),
        (vec![], "enough parameters"),
    ] {
        let fault = call(&world, "system.multicall", &params).await.unwrap_err();
        assert!(fault.contains(words), "{fault}");
    }
}

#[tokio::test]
async fn a12_a_call_in_json_is_rejected_in_json() {
    let world = World::with_tides(2, &[]).await;
    for (content_type, body, id) in [
        ("application/json", r#"{"method":"rssCloud.ping","params":["x"],"id":7}"#, json!(7)),
        ("", r#" [{"method":"rssCloud.ping"}]"#, json!(null)),
        ("application/json", "{", json!(null)),
    ] {
        let (status, told, text) = post(&world, content_type, body).await;
        assert_eq!(status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
        assert_eq!(told, "application/json; charset=utf-8");
        let answer: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&id, &json!(-32600)), "{text}");
        assert!(answer["error"]["message"].as_str().unwrap().contains("XML-RPC"), "{text}");
    }
}
