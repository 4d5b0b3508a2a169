//! Copying a gateway into a database with other cells: nothing is lost, nothing is there twice,
//! however often the copy is interrupted.

mod dump;
mod fill;

use std::collections::BTreeMap;

use feedgate_core::resource::ResourceId;
use feedgate_store::{self as store, CopyError, CopySettings, CopySummary};

use self::dump::{Dump, counters, dump};
use self::fill::{FEEDS, fill};
use super::collections::{log, named, publish, settle};
use super::search::{self, indexed_rows};
use super::secrets::keys;
use super::{listed, resource, signing_keys, subscribe, topic};
use crate::support::claiming_store::ClaimingStore;
use crate::support::postgres::{Database, Kind, connect};
use crate::support::transfer::{export_lines, import_lines};

/// Rows in a chunk: few, so that most tables have several.
const BATCH_ROWS: usize = 7;

async fn filled(kind: Kind, cells: usize) -> Database {
    let mut database = Database::with_cells(kind, cells).await;
    database.secret_keys = keys(1, &[]);
    fill(&database).await;
    let store = database.open().await;
    store.add_signing_key(&signing_keys::key(1, "01")).await.unwrap();
    store.close().await;
    database
}

async fn empty(cells: usize) -> Database {
    let mut database = Database::bare_with_cells(Kind::Postgres, cells).await;
    database.secret_keys = keys(1, &[]);
    database
}

async fn copy(
    from: &Database,
    to: &Database,
    stop_after: Option<u64>,
) -> Result<CopySummary, CopyError> {
    let settings = CopySettings {
        from: from.url.clone(),
        to: to.settings(),
        batch_rows: BATCH_ROWS,
        stop_after,
    };
    store::copy(&settings, &mut |_| {}).await
}

/// The code of the error with which a copy is refused.
async fn refusal(from: &Database, to: &Database) -> &'static str {
    copy(from, to, None).await.unwrap_err().code()
}

fn assert_same(before: &Dump, after: &Dump) {
    assert_eq!(before.keys().collect::<Vec<_>>(), after.keys().collect::<Vec<_>>());
    for (table, rows) in before {
        assert_eq!(rows, &after[table], "{table}");
    }
}

/// The numbers of all resources with a subscription, by their topics.
async fn numbers(database: &Database) -> BTreeMap<String, ResourceId> {
    let store = database.open().await;
    let mut numbers = BTreeMap::new();
    for n in 0..FEEDS {
        let topic = topic(&format!("feed{n}")).as_str().to_owned();
        let found = store.find(&topic).await.unwrap().unwrap();
        numbers.insert(topic, found.id);
    }
    store.close().await;
    numbers
}

async fn everything_is_copied(from: Database, cells: usize) {
    let numbers = numbers(&from).await;
    let (before, counted) = (dump(&from).await, counters(&from).await);
    let is_filled = |(table, rows): (&String, &Vec<String>)| (!rows.is_empty(), table.clone());
    let unfilled: Vec<_> = before.iter().map(is_filled).filter(|(filled, _)| !filled).collect();
    assert_eq!(unfilled, [], "the test has rows in every table");

    let to = empty(cells).await;
    let copied = copy(&from, &to, None).await.unwrap();
    assert!(copied.rows > 500 && !copied.was_complete, "{copied:?}");
    assert_same(&before, &dump(&to).await);
    assert_eq!(counters(&to).await, counted);
    // The dump does not have the numbers of subscriptions.
    let strange = "
        select cast(b.number as text) from backlogs b
         where not exists (select 1 from subscriptions s
                            where s.resource_id = b.resource_id and s.id = b.number
                              and s.host = b.host and s.account_id = b.account_id)";
    assert_eq!(to.texts(strange).await, [""; 0], "each backlog has its subscriptions");
    let again = copy(&from, &to, None).await.unwrap();
    assert!(again.was_complete, "{again:?}");

    let store = to.open().await;
    let pings = counted.iter().filter(|(name, _)| name.starts_with("pings")).map(|(_, n)| n);
    assert_eq!(store.newest_change().await.unwrap().1, pings.sum::<i64>() as u64);
    let signed = listed(&store).await;
    let secrets: Vec<_> = signed.iter().filter_map(|one| one.signing.secret.as_ref()).collect();
    assert_eq!(secrets.len(), FEEDS, "encrypted secrets can be read in the copy");
    assert!(secrets.iter().all(|secret| secret.expose() == "opensesame"));
    let store = ClaimingStore::new(store);
    for (topic, old) in numbers {
        let found = store.find(&topic).await.unwrap().unwrap();
        assert_eq!(resource(&store, old).await, found, "{topic} is found by its old number");
        assert!(cells == 1 || (found.id.0 >> 40) < cells as i64);
    }
    assert_eq!(store.pending_fan_outs(9).await.unwrap().len(), 1);
    // The search index is not copied: a gateway that is started on the target builds it.
    assert_eq!(indexed_rows(&to).await, 0);
    store.open_search_index().await.unwrap();
    search::settle(&store, 50_000).await;
    assert_eq!(indexed_rows(&to).await, indexed_rows(&from).await);
    for n in 0..20 {
        let made = subscribe(&store, &format!("new{n}"), "https://callback.test/").await;
        let found = resource(&store, made.id.resource).await;
        assert_eq!(found.topic, topic(&format!("new{n}")), "no number is given twice");
        publish(&store, "feed3", 30_000 + n, &[&format!("new {n}")]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_copied_into_four_cells() {
    everything_is_copied(filled(Kind::Sqlite, 1).await, 4).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_cell_is_copied_into_four() {
    everything_is_copied(filled(Kind::Postgres, 1).await, 4).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn four_cells_are_copied_into_three() {
    everything_is_copied(filled(Kind::Postgres, 4).await, 3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn four_cells_are_copied_into_one() {
    everything_is_copied(filled(Kind::Postgres, 4).await, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_of_a_copy_is_found_by_the_oldest_numbers() {
    let from = filled(Kind::Sqlite, 1).await;
    let numbers = numbers(&from).await;
    let (between, to) = (empty(4).await, empty(3).await);
    copy(&from, &between, None).await.unwrap();
    let between_numbers = self::numbers(&between).await;
    copy(&between, &to, None).await.unwrap();
    let store = to.open().await;
    for (topic, old) in numbers.into_iter().chain(between_numbers) {
        assert_eq!(resource(&store, old).await.topic.as_str(), topic);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_is_interrupted_again_and_again_is_complete_in_the_end() {
    let from = filled(Kind::Sqlite, 1).await;
    let before = dump(&from).await;
    let to = empty(2).await;
    // Each run writes one transaction more than the one before, so that the copy is interrupted at
    // every kind of step, and within every chunk.
    let mut interruptions = 0;
    for transactions in 0.. {
        match copy(&from, &to, Some(transactions)).await {
            Ok(_) => break,
            Err(err) => assert_eq!(err.code(), "interrupted", "{err}"),
        }
        interruptions += 1;
        if transactions > 0 {
            let Err(refused) = store::open(&to.settings()).await else { panic!("it was opened") };
            assert_eq!(refused.code(), "copy_unfinished", "{refused}");
        }
    }
    assert!(interruptions > 10, "{interruptions}");
    assert_same(&before, &dump(&to).await);
    to.open().await.ready().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_in_use_is_refused() {
    for kind in [Kind::Sqlite, Kind::Postgres] {
        let from = Database::with_cells(kind, 1).await;
        let to = empty(2).await;
        let node = from.open().await;
        assert_eq!(refusal(&from, &to).await, "source_in_use", "{kind:?}");
        node.close().await;
        copy(&from, &to, None).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_was_used_meanwhile_is_refused() {
    for kind in [Kind::Sqlite, Kind::Postgres] {
        let from = filled(kind, 1).await;
        let to = empty(2).await;
        copy(&from, &to, Some(20)).await.unwrap_err();
        from.open().await.close().await;
        assert_eq!(refusal(&from, &to).await, "source_changed", "{kind:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_target_that_has_something_in_it_is_refused() {
    let from = filled(Kind::Sqlite, 1).await;
    let to = Database::with_cells(Kind::Postgres, 2).await;
    let store = to.open().await;
    assert_eq!(refusal(&from, &to).await, "target_in_use");
    subscribe(&store, "a", "https://callback.test/").await;
    store.close().await;
    assert_eq!(refusal(&from, &to).await, "target_not_empty");
    let other = filled(Kind::Sqlite, 1).await;
    let new = empty(2).await;
    copy(&from, &new, None).await.unwrap();
    assert_eq!(refusal(&other, &new).await, "target_not_empty", "it is another copy");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_source_or_no_target_is_refused() {
    let (from, file) = (filled(Kind::Sqlite, 1).await, Database::bare(Kind::Sqlite).await);
    let bare = empty(2).await;
    assert_eq!(refusal(&file, &bare).await, "no_source");
    assert_eq!(refusal(&empty(1).await, &bare).await, "no_source");
    assert_eq!(refusal(&from, &file).await, "target_not_postgres");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_being_copied_cannot_be_opened() {
    let database = Database::with_cells(Kind::Postgres, 2).await;
    let client = connect(&database.url).await;
    let lock = "select pg_advisory_lock(1717921124, hashtext(current_schema()::text))";
    client.batch_execute(lock).await.unwrap();
    let Err(refused) = store::open(&database.settings()).await else { panic!("it was opened") };
    assert_eq!(refused.code(), "being_copied");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_collection_took_before_a_crash_is_not_taken_again() {
    let from = Database::with_cells(Kind::Postgres, 4).await;
    let store = ClaimingStore::new(from.open().await);
    let names: Vec<String> = (0..FEEDS).map(|n| format!("member{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let named_log = named(&store, &names).await;
    for name in &names {
        publish(&store, name, 1, &[&format!("{name} 1"), &format!("{name} 2")]).await;
    }
    settle(&store, 2).await;
    let taken = log(&store, named_log).await;
    store.close().await;
    // As if the gateway had died before the cursors in other cells moved.
    let cell = named_log.0 >> 40;
    let elsewhere = format!(
        "insert into collection_cursors (resource_id, collection_id, cursor, upto, due_at)
         select id, {}, 0, head, 0 from resources where kind = 'feed' and id >> 40 <> {cell}",
        named_log.0
    );
    from.run(&elsewhere).await;
    let (copied, imported) = (empty(1).await, Database::with_cells(Kind::Postgres, 1).await);
    copy(&from, &copied, None).await.unwrap();
    import_lines(&imported, &export_lines(&from, true).await).await;
    for to in [copied, imported] {
        let store = ClaimingStore::new(to.open().await);
        let named_log = named(&store, &names).await;
        settle(&store, 3).await;
        assert_eq!(log(&store, named_log).await, taken);
        publish(&store, names[0], 4, &[&format!("{} 3", names[0])]).await;
        settle(&store, 5).await;
        assert_eq!(log(&store, named_log).await.len(), taken.len() + 1);
    }
}
