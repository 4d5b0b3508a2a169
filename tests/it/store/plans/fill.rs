//! Fills the tables of a PostgreSQL database: enough rows that reading all of a table is never the
//! cheapest plan if there is an index.

use super::super::{document, few, request, subscribe, topic};
use crate::store::{at, poll};
use crate::support::postgres::{Database, Kind};

use std::sync::Arc;

use chrono::TimeDelta;
use feedgate_core::callback_slots::SlotTerms;
use feedgate_core::change_detection::Candidate;
use feedgate_core::claim::QueuePosition;
use feedgate_core::node::{NodeId, NodeInfo};
use feedgate_core::poll::{NewContent, Poll};
use feedgate_core::query::Query;
use feedgate_core::search::{IndexSearch, UnindexedRange};
use feedgate_core::topic::Topic;
use feedgate_store::{KnownClock, Store};

/// Runs, on PostgreSQL, the few statements that the store runs there only: those about the clock of
/// the database, locks and notifications.
pub(super) async fn run_statements_of_postgres() {
    let database = Database::with_cells(Kind::Postgres, 1).await;
    let store = database.open().await;
    store.read_clock(at(0)).await.unwrap();
    store.move_due_times(1, TimeDelta::zero()).await.unwrap();
    let in_doubt = KnownClock::new(|_| false);
    in_doubt.note_generation(1);
    store.go_by_clock(&Arc::new(in_doubt));
    subscribe(&store, "a", "https://callback.test/").await;
    store.claim_resources(at(1), at(2), &few(1)).await.unwrap();
    store.claim_subscriptions(at(1), at(2), &few(1), QueuePosition::START).await.unwrap();
    // Polls of two servers that end together are recorded together.
    let mut watched = Vec::new();
    for url in ["https://one.test/", "https://two.test/"] {
        let mut request = request("", "https://callback.test/");
        request.topic = Topic::parse(url).unwrap();
        watched.push(store.subscribe(&request, at(0)).await.unwrap().id.resource);
    }
    let nothing = Poll { found: NewContent::Nothing, leaves_details: true, ..poll(at(3), &[]) };
    let polls = watched.iter().map(|id| store.record(*id, &nothing));
    futures_util::future::try_join_all(polls).await.unwrap();
    search(&store).await;
    share_callback_hosts(&store).await;
    store.close().await;
}

/// Lets a node take all hosts, renew them, give up half of them to another, and take them all when it has gone.
async fn share_callback_hosts(store: &Store) {
    let terms = SlotTerms {
        lease: TimeDelta::seconds(5),
        claim: TimeDelta::seconds(60),
        request: TimeDelta::seconds(12),
    };
    for (id, seconds) in [("a", 10), ("a", 13), ("b", 13), ("a", 14), ("b", 15), ("a", 40)] {
        let (id, name) = (NodeId(id.to_owned()), String::new());
        let node = NodeInfo { id, name, version: String::new(), started_at: at(0) };
        store.share_callback_hosts(&node, at(seconds), terms).await.unwrap();
    }
}

/// Searches for a word that is in many entries.
async fn search(store: &Store) {
    store.open_search_index().await.unwrap();
    let resource = store.ensure(&topic("b"), at(0)).await.unwrap();
    let ids: Vec<String> = (0..50).map(|n| format!("e{n}")).collect();
    let entry = |id: &String| {
        Candidate::of_id(id, format!("<entry><id>{id}</id><title>an apple</title></entry>"))
    };
    let found = document(at(3), ids.iter().map(entry).collect());
    store.record(resource.id, &Poll { found, ..poll(at(3), &[]) }).await.unwrap();
    for second in [4, 5] {
        let claimed = store.claim_unindexed(at(second), at(60), 1).await.unwrap();
        let ranges = claimed.iter().map(UnindexedRange::to_indexed).collect();
        store.add_to_search_index(ranges, at(second)).await.unwrap();
    }
    let keys = Query::parse("apple").unwrap().search_keys();
    let search = IndexSearch { keys, before: None, after: None, limit: 1 };
    let found = store.find_possible_matches(&search).await.unwrap();
    assert_eq!(found.entries.len(), 1);
}

/// Returns a database in which all tables that grow are filled.
pub(super) async fn filled_database() -> Database {
    let database = Database::with_cells(Kind::Postgres, 1).await;
    for (table, columns, many, values) in ROWS {
        let insert = format!(
            "insert into {table} ({columns}) select {values} from generate_series(1, {many}) n"
        );
        database.run(&insert).await;
    }
    // Only the tables of this test: others drop theirs at the same time.
    let tables = "select tablename::text from pg_tables where schemaname = current_schema()";
    for table in database.texts(tables).await {
        database.run(&format!("vacuum analyze {table}")).await;
    }
    database
}

/// The tables, their columns, the number of rows, and the values of row `n`. Resources come first:
/// others refer to them.
#[rustfmt::skip]
const ROWS: &[(&str, &str, u32, &str)] = &[
    ("resources", "id, topic, fetch_url, host, kind, subscribers, unwatched_since, next_fetch, due_at,
                   claimed_until, fetched_at, measured_at, failing, head, min_period_s, base_period_ms, period_s, poll_times", 10_000,
     "n, 'https://h' || n % 5000 || '.test/' || n, 'https://h' || case when n % 50 = 7 then n else n % 5000 end || '.test/' || n,
      'h' || n % 5000 || '.test:443', 'feed', case when n % 5 = 0 then 0 else 10 end,
      case when n % 10 = 0 then n end, n * 1000, n * 1000, case when n % 200 = 0 then n * 1000 end,
      case when n % 50 = 8 then null else n * 1000 end, n * 1000, case when n % 50 = 9 then 1 else 0 end, 5, 3600, n, 3600, repeat('x', 200)"),
    ("former_numbers", "former_id, resource_id", 10_000, "n + 100000, n"),
    ("resource_details", "resource_id, status, polling", 10_000, "n, '{}', repeat('x', 300)"),
    ("resource_names", "resource_id, name, last_new", 10_000, "n, 'h' || n % 5000 || '.test/' || n, -n"),
    ("resource_words", "resource_id, word", 50_000, "(n - 1) % 10000 + 1, 'w' || n"),
    ("resource_urls", "resource_id, role, url_hash", 10_000, "n, 'topic', decode(md5(n::text), 'hex')"),
    ("feed_headers", "resource_id, header_secret", 5_000, "n, repeat('x', 60)"),
    ("moves", "resource_id, at, from_url, to_url", 10_000, "n, n, 'https://a.test/' || n, 'https://b.test/' || n"),
    ("upstreams", "resource_id, protocol, procedure, endpoint, host, topic, token, secret, state, is_trusted, due_at", 10_000,
     "n, 'websub', '', 'https://hub.test/' || n, 'h' || n % 1000 || '.test', 'https://h.test/' || n, n, '', 'active', n % 2, n"),
    ("records", "resource_id, seq, appended_at, entry_hash, entry_id, atom, predecessor, member_id", 30_000,
     "n % 300 + 1, n, n, decode(md5(n::text), 'hex'), 'tag:' || n, repeat('x', 200),
      case when n % 5 = 0 then 1 end, case when n % 10 = 0 then 1 end"),
    ("pages", "resource_id, page, first_seq, last_seq, bytes, begun_at, ended_at", 10_000, "n % 300 + 1, n, n, n, 1000, n, n"),
    ("entries", "resource_id, first_seq, newest_seq, digest, title_digest, published, updated, seen_at", 30_000,
     "n % 300 + 1, n, n, decode(md5(n::text), 'hex'), '', n, n, n"),
    ("entry_keys", "resource_id, key, first_seq, alias", 30_000,
     "n % 300 + 1, decode(md5(n::text), 'hex'), n, n % 2"),
    ("bodies", "resource_id, version, hash, bytes", 10_000,
     "n, 1, decode(md5(n::text), 'hex'), decode(repeat('00', 500), 'hex')"),
    ("subscriptions", "resource_id, account_id, callback, host, protocol, procedure, format, lease_until, created_at,
                       cursor, failed_changes, retry_at, failures, paused_at", 60_000,
     "n % 300 + 1, case when n % 10 = 0 then n % 10000 + 1 else 0 end, 'https://s' || n % 1000 || '.test/' || n,
      's' || n % 1000 || '.test:443', case when n % 3 = 0 then 'websub' else 'http-post' end, '', 'atom', n * 1000, n,
      5, case when n % 100 = 0 then 1 else 0 end, case when n % 100 = 0 then n end, case when n % 100 = 0 then 1 else 0 end,
      case when n % 100 = 1 then n end"),
    ("reading_lists", "resource_id, subscription_id, account_id, topic, callback, due_at, report", 30_000,
     "n % 300 + 1, n, n % 10000 + 1, 'https://h.test/' || n % 300, 'https://s.test/' || n, n, '{}'"),
    ("backlogs", "resource_id, number, account_id, host, size, due_at, claimed_until", 20_000,
     "n % 300 + 1, n, case when n % 10 = 0 then n % 10000 + 1 else 0 end, 's' || n / 20 || '.test:443', n % 9 + 1, n,
      case when n % 2 = 0 then n end"),
    ("delivery_attempts", "resource_id, subscription_id, at, took, verdict, code, error, content, first_number,
                           last_number, entries, body_bytes, content_type, is_public, request_headers,
                           response_headers, response_body", 20_000,
     "(n % 2000 + 1) % 300 + 1, (select min(id) from subscriptions) + n % 2000, n, 1, 'delivered', 'ok', '', 'entries', 1, 1, 1, 1, '', 1, '[]', '[]',
      decode(repeat('00', 200), 'hex')"),
    ("fan_outs", "resource_id, next_id, advanced_at", 10_000, "n, n, n"),
    ("kept_cursors", "resource_id, hash, counts_bodies, cursor, until", 20_000,
     "n % 300 + 1, decode(md5(n::text), 'hex'), 0, n, n"),
    ("subscription_counts", "account_id, host, stripe, subscriptions", 20_000,
     "case when n % 2 = 0 then n else 0 end, case when n % 2 = 0 then '' else 's' || n || '.test' end, n % 16, 1"),
    ("account_appends", "account_id, stripe, day, bytes, used_up_day", 20_000, "n, n % 16, 20000, 1, case when n % 100 = 0 then 20000 else 0 end"),
    ("intents", "hash, mode, account_id, topic, callback, host, protocol, procedure, format, lease_s, due_at", 10_000,
     "decode(md5(n::text), 'hex'), 'subscribe', 0, 'https://h.test/' || n, 'https://s.test/' || n,
      's' || n % 1000 || '.test', 'websub', '', 'atom', 60, n"),
    ("forwarded_pings", "hash, target, name, url, feed_url, due_at", 10_000,
     "decode(md5(n::text), 'hex'), 't' || n % 5, 'n', 'https://h.test/' || n, 'https://h.test/' || n, n"),
    ("hosts", "host, next_fetch_at, last_fetch_at, fetch_interval, backoff_until", 10_000,
     "'h' || n || '.test:443', n, n, 1000000, case when n % 100 = 0 then n end"),
    ("refusals", "resource_id, host, at, http_code", 10_000, "n, 'h' || n % 500 || '.test:443', n, 503"),
    ("robots", "origin, fetched_at, rules", 10_000, "'https://h' || n || '.test', n, '{}'"),
    ("changes", "at, source, name, url, resource_id", 20_000,
     "n * 1000000::bigint, case when n % 2 = 0 then 'seen' else 'ping' end, 'n', 'https://h.test/' || n, n % 10000"),
    ("change_hours", "hour, unit, count, parts", 10_000, "n * 3600000000::bigint, 'second', n, 1"),
    ("change_hour_parts", "hour, part, lines", 10_000, "n * 3600000000::bigint, 0, decode(repeat('00', 500), 'hex')"),
    ("accounts", "id, login, password_hash, created_at", 10_000, "n, 'a' || n, 'x', n"),
    ("tokens", "account_id, name, scopes, hash, created_at, revoked_at, expires_at", 10_000,
     "(n - 1) % 10000 + 1, 'n', 'read', decode(md5(n::text), 'hex'), n, case when n % 10 = 0 then n end,
      case when n % 10 = 1 then n end"),
    ("alert_addresses", "account_id, url, kinds, created_at, feeds_told_until, due_at", 10_000,
      "n, 'https://a.test/' || n, 'failing', n, n, n"),
    ("idempotency_keys", "account_id, key_hash, request_hash, created_at, status, body", 20_000,
     "n % 10000 + 1, decode(md5(n::text), 'hex'), decode(md5(n::text), 'hex'), n, 201, repeat('x', 200)"),
    ("sessions", "hash, token_id, created_at, used_at", 10_000,
     "decode(md5(n::text), 'hex'), (select min(id) from tokens) + n - 1, n, n"),
    ("nodes", "id, name, version, started_at, seen_at, serves_until", 10_000, "n, 'h' || n, '1', n, n, n"),
    ("callback_slots", "slot, node, until", 128, "n - 1, n % 3, n"),
    ("stored_files", "account_id, name, media_type, etag, changed_at, bytes, body", 10_000,
     "(n - 1) % 5000 + 1, 'f' || n, 'text/xml', 'e', n, 100, decode(repeat('00', 100), 'hex')"),
    ("collections", "resource_id, name, account_id", 10_000, "n, 'account:' || n, n"),
    ("collection_members", "resource_id, collection_id", 10_000, "n, n % 1000 + 1"),
    ("collected", "collection_id, resource_id, upto, at", 10_000, "n, 1, 5, n"),
    ("collection_cursors", "resource_id, collection_id, cursor, upto, due_at", 10_000, "n, 1, 0, 5, n"),
    ("tracks", "resource_id, query, is_open, version, checked_at, registrant_network", 10_000, "n, 'q' || n, n % 2, n, n, -n"),
    ("search_entries", "position, resource_id, seq", 20_000, "n, n % 300 + 1, n"),
    ("search_index", "rowid, keys", 20_000,
     "n, array_to_tsvector(array['a' || n % 5000, 'b' || n % 5000, repeat('c', 200)])"),
    ("search_cursors", "resource_id, cursor, upto, due_at", 10_000, "n, 0, 5, n"),
    ("backfills", "resource_id, started_at, ended_at, due_at", 10_000,
     "n, n, case when n % 10 > 0 then n end, case when n % 10 = 0 then n end"),
    ("backfill_visits", "resource_id, url_hash", 10_000, "n % 300 + 1, decode(md5(n::text), 'hex')"),
    ("staged_entries", "resource_id, key, page, ordinal, entry_id, digest, title_digest, published, updated, atom", 20_000,
     "n % 300 + 1, decode(md5(n::text), 'hex'), 1, n, 'tag:' || n, '', '', n, n, repeat('x', 200)"),
    ("gateway_traffic", "unit_s, at", 10_000, "case when n % 10 = 0 then 3600 else 60 end, n * 60000000::bigint"),
    ("resource_traffic", "resource_id, at", 20_000, "n % 10000 + 1, n * 3600000000::bigint"),
    ("host_traffic", "host, at", 20_000, "'h' || n % 10000, n * 3600000000::bigint"),
    ("account_traffic", "account_id, at", 20_000, "n % 10000 + 1, n * 3600000000::bigint"),
    ("events", "id, at, kind, outcome, code, via, feed, callback, redacted_callback, account_id, count, detail, private_detail", 20_000,
     "n, n, 'k' || n % 15, 'ok', '', '', 'https://h.test/' || n, '', '', 0, 1, 'text', ''"),
];
