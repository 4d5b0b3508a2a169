//! An archived document is the same bytes for ever: on both stores, on every node, with
//! every later feedgate. `fixtures/archive` holds the bytes.

use std::fs;
use std::path::Path;
use std::time::Duration;

use feedgate::http::routes::archive::render::{Archive, Order};
use feedgate_core::change_detection::Candidate;
use feedgate_core::document_format::DocumentFormat;
use feedgate_core::host_groups::HostGroups;
use feedgate_core::page::PageLimits;
use feedgate_core::poll::Poll;
use feedgate_core::record::Digest;
use feedgate_core::resource::ResourceKind;

use super::{at, document, on_both_stores, poll, topic};
use crate::support::postgres::Database;
use crate::support::validator::assert_sound;

on_both_stores!(an_archived_document_is_the_same_bytes_for_ever);

const HOME: &str = "https://gate.test/feeds/7";
const DAY: i64 = 86_400;

/// Entry `n` with a text, as it was stored once.
fn entry(n: u32, text: &str) -> Candidate {
    let id = format!("tag:tides.test,2026:{n}&co");
    let atom = format!(
        "<entry xmlns=\"http://www.w3.org/2005/Atom\">\n<id>tag:tides.test,2026:{n}&amp;co</id>\n\
         <title type=\"text\">Tide {n}</title>\n<updated>2026-09-21T00:00:00Z</updated>\n\
         <content type=\"html\">&lt;p&gt;{text}, 3 µm</content>\n</entry>\n"
    );
    Candidate { digest: Digest::from_parts(&[text]), ..Candidate::of_id(&id, atom) }
}

fn found(day: i64, candidates: Vec<Candidate>) -> Poll {
    let mut poll = poll(at(day * DAY), &[]);
    poll.kind = Some(ResourceKind::Feed);
    poll.found = document(at(day * DAY), candidates);
    poll
}

async fn an_archived_document_is_the_same_bytes_for_ever(database: Database) {
    // Five records to a page, or as many as are shorter than two kilobytes together.
    let cut = PageLimits { records: 5, bytes: 2_000 };
    let nodes = [
        database.open_cut(HostGroups::new(Duration::ZERO), cut).await,
        database.open_cut(HostGroups::new(Duration::ZERO), cut).await,
    ];
    let id = nodes[0].ensure(&topic("tides"), at(0)).await.unwrap().id;
    let long = "high ".repeat(500);
    let polls = [
        found(0, vec![entry(1, "low"), entry(2, "low")]),
        found(1, vec![entry(1, "high"), entry(2, "low"), entry(3, "low")]),
        found(2, vec![entry(1, "higher"), entry(3, "low"), entry(4, "low")]),
        found(3, vec![entry(5, &long), entry(6, "low")]),
        found(4, (7..13).map(|n| entry(n, "low")).collect()),
    ];
    for (n, poll) in polls.iter().enumerate() {
        nodes[n % 2].record(id, poll).await.unwrap();
    }

    // What is there is never written again.
    let update = std::env::var_os("UPDATE_FIXTURES").is_some();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/archive/tides");
    let newest = nodes[0].page(id, None).await.unwrap().unwrap().newest;
    assert!(newest >= 4, "cut by records and by bytes");
    for number in 1..newest {
        for (order, query) in [(Order::NewestFirst, ""), (Order::OldestFirst, "?order=asc")] {
            let name = format!("{number}{}.atom", if query.is_empty() { "" } else { "-asc" });
            for node in &nodes {
                let held = node.page(id, Some(number)).await.unwrap().unwrap();
                let records = node.read_page(id, &held.page).await.unwrap();
                let topic = "https://feeds.test/tides";
                let (hub, format) = ("https://gate.test/hub", DocumentFormat::Atom);
                let archive = Archive { topic, home: HOME, hub, order, format };
                let text = archive.document(&held, &records);
                assert_sound(&format!("{HOME}/documents/{number}{query}"), &text);
                if update && !folder.join(&name).exists() {
                    fs::create_dir_all(&folder).unwrap();
                    fs::write(folder.join(&name), &text).unwrap();
                }
                let kept = fs::read_to_string(folder.join(&name)).unwrap_or_default();
                assert_eq!(
                    text, kept,
                    "{name}: what was published never changes. If it has to after all, say so \
                     in the changelog and let RENDERING in src/http/routes/archive.rs grow"
                );
            }
        }
    }
}
