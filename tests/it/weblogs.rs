//! Weblogs pings, and the documents that tell of them.

use http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use http::{Method, StatusCode};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::feeds::{between, rss};
use crate::support::gateway::Gateway;
use crate::support::postgres::{Database, Kind};
use crate::support::publisher::Publisher;
use crate::support::server::client;
use crate::support::subscriber::Subscriber;

fn call(method: &str, params: &[&str]) -> String {
    let params: String = params
        .iter()
        .map(|param| format!("<param><value><string>{param}</string></value></param>"))
        .collect();
    format!(
        "<?xml version=\"1.0\"?><methodCall><methodName>weblogUpdates.{method}</methodName>\
         <params>{params}</params></methodCall>"
    )
}

/// What old clients look for in the answer.
const THANKED: &str = "<name>flerror</name><value><boolean>0</boolean></value></member>\
    <member><name>message</name><value><string>Thanks for the ping.</string>";
const REFUSED: &str = "<name>flerror</name><value><boolean>1</boolean>";

async fn ping(gateway: &Gateway, method: &str, params: &[&str]) {
    let body = call(method, params);
    let answer = client().post(gateway.url("/RPC2")).header(CONTENT_TYPE, "text/xml").body(body);
    let answer = answer.send().await.unwrap();
    let text = answer.text().await.unwrap();
    assert!(text.contains(THANKED), "{text}");
}

/// The lines of changes.xml, newest first, without their ages.
async fn lines(gateway: &Gateway) -> Vec<String> {
    let (_, text) = gateway.get("/changes.xml").await;
    let lines = text.lines().filter_map(|line| between(line, "<weblog ", " when="));
    lines.map(str::to_owned).collect()
}

/// Says something to a socket and reads to its end.
async fn say(gateway: &Gateway, bytes: &[u8]) -> String {
    let addr = gateway.url("");
    let mut stream = TcpStream::connect(addr.trim_start_matches("http://")).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    String::from_utf8(answer).unwrap()
}

#[tokio::test]
async fn pings_are_taken_as_real_senders_make_them() {
    let database = Database::new(Kind::Sqlite).await;
    let gateway = Gateway::start(&database, &[]).await;
    let (home, page, feed) = ("http://a.test/", "http://a.test/new", "http://a.test/rss");
    let plain = "name=\"A\" url=\"http://a.test/\"";
    let fed = "name=\"A\" url=\"http://a.test/\" rssUrl=\"http://a.test/rss\"";
    #[rustfmt::skip]
    let cases: [(&str, &[&str], &str); 11] = [
        ("ping",         &["A", home],                         plain),
        ("ping",         &["A", home, page],                   plain),
        ("ping",         &["A", home, "", "none"],             plain),
        ("ping",         &[home, "A"],                         plain),
        ("ping",         &["A", " http://a.test/\n"],          plain),
        ("extendedPing", &["A", home, feed],                   fed),
        ("extendedPing", &["A", home, ""],                     plain),
        ("extendedPing", &["A", home, page, feed],             fed),
        ("extendedPing", &["A", home, page, feed, "rss|opml"], fed),
        ("extendedPing", &["A", home, feed, "rss|opml"],       fed),
        ("extendedPing", &["A", home, page, ""],               plain),
    ];
    for (n, (method, params, want)) in cases.into_iter().enumerate() {
        ping(&gateway, method, params).await;
        let lines = lines(&gateway).await;
        assert_eq!((lines.len(), lines[0].as_str()), (n + 1, want), "{method} {params:?}");
    }
}

#[tokio::test]
async fn s20_what_is_no_ping_is_refused_in_the_words_of_its_protocol() {
    let database = Database::new(Kind::Sqlite).await;
    let gateway = Gateway::start(&database, &[]).await;
    let home = "http://a.test/";
    let long = ["n".repeat(1_025), format!("{home}{}", "x".repeat(2_048)), "z".repeat(5_000)];
    let soap = |inside: &str| {
        format!("<E:Envelope xmlns:E=\"x\"><E:Body><ping>{inside}</ping></E:Body></E:Envelope>")
    };
    let named = |name: &str, url: &str| {
        soap(&format!("<weblogname>{name}</weblogname><weblogurl>{url}</weblogurl>"))
    };
    #[rustfmt::skip]
    let cases = [
        (call("ping", &["A"]),                 200, "there aren't enough parameters"),
        (call("ping", &["A", home, "", "", ""]), 200, "there are too many parameters"),
        (call("extendedPing", &["A", home]),   200, "there aren't enough parameters"),
        (call("ping", &["A", "here"]),         200, REFUSED),
        (call("ping", &["A", "ftp://a.test/"]), 200, REFUSED),
        (call("ping", &[&long[0], home]),      200, "name is longer than 1024 characters"),
        (call("ping", &["A", &long[1]]),       200, "address is longer than 2048 bytes"),
        (call("ping", &[&long[2], home]),      200, "<fault>"),
        (call("pong", &["A", home]),           200, "weblogUpdates.pong&quot; is not defined"),
        ("<methodCall><methodName>".to_owned(), 200, "<fault>"),
        (named("A", "here"),                   200, "<flerror xsi:type=\"xsd:boolean\">1"),
        (named(&long[0], home),                200, "name is longer than 1024 characters"),
        (soap(""),                             500, "there aren't enough parameters"),
    ];
    for (body, status, want) in cases {
        let answer = client().post(gateway.url("/weblogUpdates")).body(body.clone());
        let answer = answer.send().await.unwrap();
        assert_eq!(answer.status(), status, "{body}");
        let text = answer.text().await.unwrap();
        assert!(text.contains(want), "{body}: {text}");
    }
    assert_eq!(lines(&gateway).await, [""; 0], "nothing of it is listed");
}

#[tokio::test]
async fn clients_of_the_first_hour_are_understood() {
    let database = Database::new(Kind::Sqlite).await;
    let gateway = Gateway::start(&database, &[]).await;
    // Without Host, in Latin-1, with numeric entities; the answer ends with the connection.
    let body = b"<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>\r\n<methodCall>\
        <methodName>weblogUpdates.ping</methodName><params>\
        <param><value>Caf\xe9 &#252;ber &#x201c;alles&#8221;</value></param>\
        <param><value>http://cafe.test/</value></param></params></methodCall>";
    let head = format!(
        "POST /RPC2 HTTP/1.0\r\nUser-Agent: Radio UserLand/7.1\r\nContent-Type: text/xml\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    let answer = say(&gateway, &[head.as_bytes(), body].concat()).await;
    assert!(answer.starts_with("HTTP/1.0 200 OK\r\n"), "{answer}");
    assert!(answer.contains(THANKED), "{answer}");

    // UserLand's SOAP, as soapware.org shows it, in schemas of 1999 and us-ascii.
    let body = "<?xml version=\"1.0\"?>\r\n<SOAP-ENV:Envelope \
        SOAP-ENV:encodingStyle=\"http://schemas.xmlsoap.org/soap/encoding/\" \
        xmlns:SOAP-ENV=\"http://schemas.xmlsoap.org/soap/envelope/\" \
        xmlns:xsd=\"http://www.w3.org/1999/XMLSchema\" \
        xmlns:xsi=\"http://www.w3.org/1999/XMLSchema-instance\">\r\n<SOAP-ENV:Body>\
        <ping><weblogurl xsi:type=\"xsd:string\">http://soap.test/</weblogurl>\
        <weblogname xsi:type=\"xsd:string\">Soap &#233; Co</weblogname></ping>\
        </SOAP-ENV:Body></SOAP-ENV:Envelope>";
    let head = format!(
        "POST /weblogUpdates HTTP/1.0\r\nContent-Type: text/xml; charset=\"us-ascii\"\r\n\
         SOAPAction: \"/weblogUpdates\"\r\nContent-length: {}\r\n\r\n",
        body.len()
    );
    let answer = say(&gateway, format!("{head}{body}").as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.0 200 OK\r\n"), "{answer}");
    assert!(answer.contains("<flerror xsi:type=\"xsd:boolean\">0</flerror>"), "{answer}");
    assert!(answer.contains("Thanks for the ping."), "{answer}");

    let ping = "GET /pingSiteForm?name=Wget&url=http%3A%2F%2Fwget.test%2F HTTP/1.0\r\n\r\n";
    assert!(say(&gateway, ping.as_bytes()).await.contains("Thanks for the ping."));

    let changes = say(&gateway, b"GET /changes.xml HTTP/1.0\r\n\r\n").await;
    let lines: Vec<_> = changes.lines().filter_map(|l| between(l, "<weblog ", " when")).collect();
    #[rustfmt::skip]
    assert_eq!(lines, [
        "name=\"Wget\" url=\"http://wget.test/\"",
        "name=\"Soap \u{e9} Co\" url=\"http://soap.test/\"",
        "name=\"Caf\u{e9} \u{fc}ber \u{201c}alles\u{201d}\" url=\"http://cafe.test/\"",
    ]);
}

#[tokio::test]
async fn pings_stand_in_changes_xml_newest_first() {
    let database = Database::new(Kind::Sqlite).await;
    let gateway = Gateway::start(&database, &[]).await;
    ping(&gateway, "ping", &["Old &amp; slow", "http://old.test/"]).await;
    let feed = "http://new.test/rss?a=1&amp;b=2";
    ping(&gateway, "extendedPing", &["New", "http://new.test/", feed]).await;

    for (path, longest) in [
        ("/changes.xml", 1),
        ("/shortChanges.xml", 1),
        ("/changes.xml?last=60", 1),
        ("/changes.xml?when=seconds", 60),
    ] {
        let answer = client().get(gateway.url(path)).send().await.unwrap();
        assert_eq!(answer.headers()[CONTENT_TYPE], "text/xml; charset=utf-8");
        assert_eq!(answer.headers()[CONTENT_SECURITY_POLICY], "default-src 'none'; sandbox");
        let text = answer.text().await.unwrap();
        assert_eq!(between(&text, "<weblogUpdates ", " updated"), Some("version=\"2\""));
        assert_eq!(between(&text, "count=\"", "\""), Some("2"));
        let lines: Vec<&str> = text.lines().filter(|line| line.contains("<weblog ")).collect();
        let [new, old] = lines.as_slice() else { panic!("{path}: {text}") };
        assert_eq!(between(new, "name=\"", "\""), Some("New"));
        assert_eq!(between(new, "rssUrl=\"", "\""), Some(feed));
        assert_eq!(between(old, "name=\"", "\""), Some("Old &amp; slow"));
        assert_eq!(between(old, "url=\"", "\""), Some("http://old.test/"));
        assert!(between(old, "when=\"", "\"").unwrap().parse::<u32>().unwrap() <= longest);
    }
    let head = client().request(Method::HEAD, gateway.url("/changes.xml")).send().await.unwrap();
    assert_eq!(head.status(), StatusCode::OK);
}

#[tokio::test]
async fn a_plain_request_pings_and_is_answered_with_a_page() {
    let database = Database::new(Kind::Sqlite).await;
    let gateway = Gateway::start(&database, &[]).await;
    let blog = "name=The+RSS+Blog&url=http%3A%2F%2Fblog.test%2Frss";
    #[rustfmt::skip]
    let cases = [
        (blog,              StatusCode::OK,          "Thanks for the ping."),
        (blog,              StatusCode::OK,          "href=\"changes.xml\""),
        (blog,              StatusCode::OK,          "<dt>Site</dt><dd>The RSS Blog</dd><dt>Address</dt><dd>http://blog.test/rss</dd>"),
        ("name=A&url=here", StatusCode::BAD_REQUEST, "not &quot;here&quot;."),
        ("name=A&url=here", StatusCode::BAD_REQUEST, "type=\"url\" required value=\"here\""),
        ("name=A",          StatusCode::BAD_REQUEST, "must be an http or https URL"),
        ("",                StatusCode::OK,          "method=\"get\" action=\"pingSiteForm\">"),
    ];
    for (query, status, sentence) in cases {
        let url = gateway.url(&format!("/pingSiteForm?{query}"));
        let answer = client().get(url).send().await.unwrap();
        assert_eq!(answer.status(), status, "{query}");
        assert_eq!(answer.headers()[CONTENT_TYPE], "text/html; charset=utf-8");
        let page = answer.text().await.unwrap();
        assert!(page.contains(sentence), "{query}: {page}");
    }
    let look = gateway.url("/pingSiteForm?name=Looked+at&url=http%3A%2F%2Flook.test%2F");
    let looked = client().head(look).send().await.unwrap();
    assert_eq!(looked.status(), StatusCode::OK);
    let form =
        [("name", "Posted"), ("url", "http://posted.test/"), ("rssUrl", "http://posted.test/rss")];
    assert_eq!(gateway.post("/pingSiteForm", &form).await.0, StatusCode::OK);
    #[rustfmt::skip]
    let direct = [
        ("name=D&url=http%3A%2F%2Fd.test%2F&checkUrl=http%3A%2F%2Fd.test%2Fnew&direct=1&category=x",
            StatusCode::OK, "Thanks for the ping"),
        ("name=D&url=d&direct=1", StatusCode::BAD_REQUEST, "The weblog's address must be an http or https URL, not \"d\"."),
    ];
    for (query, status, text) in direct {
        let answer = client().get(gateway.url(&format!("/pingSiteForm?{query}"))).send().await;
        let answer = answer.unwrap();
        assert_eq!(answer.status(), status, "{query}");
        assert_eq!(answer.headers()[CONTENT_TYPE], "text/plain; charset=utf-8");
        assert_eq!(answer.text().await.unwrap(), text);
    }
    let (_, changes) = gateway.get("/changes.xml").await;
    assert!(changes.contains("name=\"The RSS Blog\" url=\"http://blog.test/rss\""), "{changes}");
    assert!(changes.contains("rssUrl=\"http://posted.test/rss\""), "{changes}");
    assert!(!changes.contains("look.test"), "HEAD pings nobody: {changes}");
}

#[tokio::test]
async fn what_is_no_address_is_not_kept() {
    let database = Database::new(Kind::Sqlite).await;
    let gateway = Gateway::start(&database, &[]).await;
    let long = format!("http://long.test/{}", "x".repeat(2_048));
    for url in ["tides", &long] {
        let publish = [("hub.mode", "publish"), ("hub.url", url)];
        assert_eq!(gateway.post("/hub", &publish).await.0, StatusCode::NO_CONTENT);
    }
    let (_, changes) = gateway.get("/changes.xml").await;
    assert!(changes.contains("count=\"0\"") && !changes.contains("<weblog "), "{changes}");
}

/// Row P-6.
#[tokio::test]
async fn a_ping_has_the_feed_of_the_weblog_read() {
    let publisher = Publisher::start().await;
    let subscriber = Subscriber::start().await;
    let database = Database::new(Kind::Sqlite).await;
    let gateway = Gateway::start(&database, &[]).await;
    publisher.put_rss("/feed", rss("tides", 1..3));
    let topic = publisher.url("/feed");
    gateway.subscribe_superfeedr(&topic, &subscriber.url("/cb"), "atom").await;

    // By the home page that the feed names, by the feed as the page that changed, as third parameter, as fourth.
    let home = "https://tides.test/";
    let pings: [(&str, &[&str]); 4] = [
        ("ping", &["Tides", home]),
        ("ping", &["Tides", "http://elsewhere.test/", &topic]),
        ("extendedPing", &["Tides", "http://elsewhere.test/", &topic]),
        ("extendedPing", &["Tides", "http://elsewhere.test/", "http://elsewhere.test/", &topic]),
    ];
    for (n, (method, params)) in (3..).zip(pings) {
        publisher.put_rss("/feed", rss("tides", 1..n + 1));
        ping(&gateway, method, params).await;
        subscriber.until("/cb", |told| told.len() == n - 2).await;
    }
}
