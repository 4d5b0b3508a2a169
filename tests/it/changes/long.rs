//! Documents of very many changes: no longer than what is cached, and rendered once.

use std::io::Read;

use feedgate::jobs::runner;
use flate2::read::GzDecoder;
use http::header::{ACCEPT_ENCODING, CONTENT_LENGTH, ETAG};
use http::{Method, StatusCode};

use super::{ages, get};
use crate::store::on_both_stores;
use crate::support::gateway::Gateway;
use crate::support::postgres::Database;
use crate::support::server::client;

on_both_stores!(
    h11_a_long_document_is_rendered_once_and_sent_to_all,
    h11_no_document_is_longer_than_what_is_cached,
);

/// Lists so many pings of a moment ago, each with a name and an address of so many characters more
/// than their numbers have.
async fn list_many(database: &Database, lines: usize, characters: usize) {
    let (now, long) = (runner::now().timestamp_micros(), "x".repeat(characters));
    let first = now - lines as i64;
    database
        .run(&format!(
            "with recursive n (n) as (select 0 union all select n + 1 from n where n + 1 < {lines})
             insert into changes (at, source, name, url)
             select {first} + n, 'weblogs', '' || n, 'https://site.test/{long}' from n"
        ))
        .await;
}

async fn h11_a_long_document_is_rendered_once_and_sent_to_all(database: Database) {
    const LINES: usize = 50_000;
    const READERS: usize = 50;
    list_many(&database, LINES, 60).await;
    let gateway = Gateway::start(&database, &[]).await;
    let (status, headers, text) = get(&gateway, "/changes.xml", &[]).await;
    assert_eq!((status, &headers[CONTENT_LENGTH]), (StatusCode::OK, &text.len().into()));
    assert!(text.len() > 5 << 20, "{}", text.len());
    let text = String::from_utf8(text).unwrap();
    let names = ages(&text).into_iter().map(|(name, _)| name.parse::<usize>().unwrap());
    assert!(names.eq((0..LINES).rev()), "every line once, newest first");

    // The lines cannot be read again, so all of these come from what was rendered.
    database.run("update changes set name = 'read again'").await;
    let unzipped = |zipped: &[u8]| {
        let mut text = String::new();
        GzDecoder::new(zipped).read_to_string(&mut text).unwrap();
        text
    };
    let gzip = [(ACCEPT_ENCODING, "gzip")];
    let (_, again, zipped) = get(&gateway, "/changes.xml", &gzip).await;
    assert_eq!(again[ETAG], headers[ETAG]);
    assert_eq!(unzipped(&zipped), text);
    let head = client().request(Method::HEAD, gateway.url("/changes.xml")).send().await.unwrap();
    assert_eq!((head.status(), &head.headers()[ETAG]), (StatusCode::OK, &headers[ETAG]));
    assert_eq!(head.headers()[CONTENT_LENGTH], text.len().to_string());
    let mut readers = tokio::task::JoinSet::new();
    for number in 0..READERS {
        let request = client().get(gateway.url(&format!("/changes.xml?last={}", 3_000 + number)));
        readers.spawn(async move { request.send().await.unwrap().bytes().await.unwrap() });
    }
    while let Some(part) = readers.join_next().await {
        assert_eq!(part.unwrap(), text, "all lines are of the last minutes");
    }
    assert!(!get(&gateway, "/changes.xml?last=0", &gzip).await.2.is_empty());
}

async fn h11_no_document_is_longer_than_what_is_cached(database: Database) {
    const MOST_BYTES: usize = 16 << 20;
    list_many(&database, 18_000, 950).await;
    let gateway = Gateway::start(&database, &[]).await;
    let (status, _, text) = get(&gateway, "/changes.xml", &[]).await;
    assert_eq!(status, StatusCode::OK);
    assert!((MOST_BYTES - 2_000..=MOST_BYTES).contains(&text.len()), "{}", text.len());
    let text = String::from_utf8(text).unwrap();
    assert_eq!(ages(&text)[0].0, "17999", "the newest are listed");
    assert!(text.ends_with("list. -->\n</weblogUpdates>\n"), "{}", &text[text.len() - 200..]);
    database.run("update changes set name = 'read again'").await;
    assert_eq!(get(&gateway, "/changes.xml", &[]).await.2, text.as_bytes());
}
