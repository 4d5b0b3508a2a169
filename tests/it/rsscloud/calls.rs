//! Calls are answered in the protocol that they are in, and in its version.

use feedgate_protocol::soap::SoapVersion;
use feedgate_protocol::{soap, xmlrpc};
use http::StatusCode;

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
