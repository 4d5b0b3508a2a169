//! The log whose documents are served, and the same documents as files.

use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, SystemTime};

use chrono::{DateTime, TimeDelta, Utc};
use feedgate_core::change_detection::{Candidate, FeedDocument as Found};
use feedgate_core::claim::ClaimToken;
use feedgate_core::host_groups::HostGroups;
use feedgate_core::page::PageLimits;
use feedgate_core::poll::{self, Poll, Polling, Trigger};
use feedgate_core::resource::ResourceKind;
use feedgate_core::schedule::Demand;
use feedgate_core::status::Status;
use feedgate_core::subscription::{Format, Lease, Statuses, SubscriptionRequest};
use feedgate_core::topic::{Callback, Topic};
use feedgate_core::upstream::UpstreamFinding;
use feedgate_core::visibility::SourceNetwork;
use feedgate_protocol::Protocol;
use feedgate_store as store;
use futures_util::StreamExt;
use futures_util::stream;

use super::AnyError;
use super::load::Document;
use super::publisher::Publisher;
use super::servers::{Gateway, PAGE_RECORDS, client};

/// Entries appended at once.
const CONCURRENCY: usize = 1_000;
/// When all files were changed: it goes into their tags.
const CHANGED_S: u64 = 1_700_000_000;

/// Writes a log of `many` archived documents into `database`, and watches what is
/// published besides. Returns where the archive is.
pub(crate) async fn write(
    database: &str,
    many: usize,
    publisher: &Publisher,
) -> Result<String, AnyError> {
    let records: i64 = PAGE_RECORDS.parse()?;
    let (url, groups) = (database.to_owned(), HostGroups::new(Duration::ZERO));
    let page_limits = PageLimits { records, ..PageLimits::default() };
    let forwarding = Default::default();
    let settings = store::StoreSettings {
        url,
        connections: 8,
        groups,
        page_limits,
        listed: Default::default(),
        forwarding,
        anonymous_bytes_per_day: 256 << 20,
        account_bytes_per_day: 32 << 30,
        cells: 1,
        secret_keys: Default::default(),
    };
    let store = store::open(&settings).await?;
    let begin = DateTime::UNIX_EPOCH + TimeDelta::days(20_000);
    let topic = Topic::parse("https://archive.test/feed".to_owned())?;
    let id = store.ensure(&topic, begin).await?.id;
    let entries: Vec<usize> = (0..many * usize::try_from(records)? + 1).collect();
    for (n, some) in entries.chunks(CONCURRENCY).enumerate() {
        let at = begin + TimeDelta::seconds(n.try_into()?);
        store.record(id, &poll(at, some.iter().map(|n| entry(*n)).collect())).await?;
    }
    for topic in publisher.topics() {
        let request = SubscriptionRequest {
            format: Format::Atom,
            statuses: Statuses::default(),
            lease: Lease::from(Duration::from_secs(864_000)),
            ..SubscriptionRequest::new(
                Topic::parse(topic)?,
                Callback::parse("https://callback.test/dev/null")?,
                Protocol::WebSub,
            )
        };
        store.subscribe(&request, begin).await?;
    }
    store.close().await;
    Ok(format!("/feeds/{id}/documents"))
}

/// Entry `n`, some 600 bytes.
fn entry(n: usize) -> Candidate {
    let id = format!("tag:archive.test,2026:{n}");
    let text = format!("What is said of {n} is as long as what is said of others. ").repeat(6);
    let atom = format!(
        "<entry xmlns=\"http://www.w3.org/2005/Atom\">\n<id>{id}</id>\n<title type=\"text\">Entry \
         {n}</title>\n<updated>2026-09-21T00:00:00Z</updated>\n<link rel=\"alternate\" \
         href=\"https://archive.test/{n}\"/>\n<content type=\"html\">&lt;p&gt;{text}</content>\n\
         </entry>\n"
    );
    Candidate::of_id(&id, atom)
}

fn poll(at: DateTime<Utc>, candidates: Vec<Candidate>) -> Poll {
    Poll {
        claim: ClaimToken::NONE,
        at,
        trigger: Trigger::Schedule,
        answered_well: true,
        kind: Some(ResourceKind::Feed),
        fetch_url: None,
        source_network: Some(SourceNetwork::Public),
        site_url: None,
        feed_head: None,
        body: None,
        upstream: UpstreamFinding::Unknown,
        semantic_digest: None,
        found: poll::NewContent::Feed(Found { at, candidates, ..Found::default() }),
        silent: true,
        is_baseline: false,
        next_fetch: at + TimeDelta::days(1),
        demand: Demand::default(),
        status: Status { http_code: 200, ..Status::default() },
        polling: Polling::default(),
        leaves_details: false,
    }
}

/// Asks the gateway for every document and puts it below `root` under the same path.
pub(crate) async fn copy(
    gateway: &Gateway,
    home: &str,
    many: usize,
    root: &Path,
) -> Result<Vec<Document>, AnyError> {
    fs::create_dir_all(root.join(home.trim_start_matches('/')))?;
    let copies = (1..=many).map(|n| async move {
        let path = format!("{home}/{n}");
        let answer = client().get(format!("{}{path}", gateway.url())).send().await?;
        let answer = answer.error_for_status()?;
        let tag = answer.headers().get("etag").ok_or("no tag")?.to_str()?.to_owned();
        let bytes = answer.bytes().await?;
        let file = root.join(path.trim_start_matches('/'));
        fs::write(&file, &bytes)?;
        let changed = SystemTime::UNIX_EPOCH + Duration::from_secs(CHANGED_S);
        File::options().write(true).open(&file)?.set_modified(changed)?;
        let theirs = format!("\"{CHANGED_S:x}-{:x}\"", bytes.len());
        Ok(Document { path, ours: tag, theirs })
    });
    let copied: Vec<Result<Document, AnyError>> =
        stream::iter(copies).buffer_unordered(32).collect().await;
    copied.into_iter().collect()
}
