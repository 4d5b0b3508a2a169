//! Statements that read a number of rows that is not bounded by their text, and the reason why each
//! may do so.

/// A statement that may read more rows because more are stored.
pub(super) struct Allowed {
    /// The name of the statement.
    pub(super) statement: &'static str,
    /// How the description of what it reads begins.
    pub(super) reads: &'static str,
    #[expect(dead_code, reason = "people read it")]
    because: &'static str,
    /// Whether another plan of PostgreSQL, which does not read that, costs nearly the same. The sample
    /// of its statistics decides between them.
    pub(super) is_optional: bool,
}

const fn allow(statement: &'static str, reads: &'static str, because: &'static str) -> Allowed {
    Allowed { statement, reads, because, is_optional: false }
}

const fn allow_either(
    statement: &'static str,
    reads: &'static str,
    because: &'static str,
) -> Allowed {
    Allowed { statement, reads, because, is_optional: true }
}

/// Why PostgreSQL reads a whole table.
const ONE_ROW: &str = "the table has one row";

/// Why the rows between two keys are read when the clock of the database was set.
const PORTION: &str =
    "when the clock of the database was set: the rows between two keys, which are a portion apart";

/// Why all slots of hosts are read.
const SLOTS: &str = "there are 128 slots";

#[rustfmt::skip]
pub(super) const ALLOWED: &[Allowed] = &[
    allow("nodes/callback_slots.rs FREE", "all of callback_slots", SLOTS),
    allow("nodes/callback_slots.rs GIVE_UP", "all of callback_slots", SLOTS),
    allow("nodes/callback_slots.rs GIVE_UP_ALL", "all of callback_slots", SLOTS),
    allow("nodes/callback_slots.rs RENEW", "all of callback_slots", SLOTS),
    allow("nodes/callback_slots.rs SLOTS", "all of callback_slots", SLOTS),
    allow("nodes/callback_slots.rs TAKE", "all of callback_slots", SLOTS),
    allow("nodes/callback_slots.rs SERVING", "nodes where", "a row for each node, deleted a day after it was killed"),
    allow("clock.rs ADVANCE", "all of clocks", ONE_ROW),
    allow("clock.rs MARK", "all of clocks", ONE_ROW),
    allow("clock.rs POSITION", "all of clocks", ONE_ROW),
    allow("clock.rs SET", "all of clocks", ONE_ROW),
    allow("clock.rs STATE", "all of clocks", ONE_ROW),
    allow("clock/known_clock.rs GENERATION", "all of clocks", ONE_ROW),
    allow("clock.rs moved", "", PORTION),
    allow("clock.rs move_rows_with", "backlogs where", PORTION),
    allow("events.rs kind_statements", "events where", "the rows of one kind between two numbers, a batch apart"),
    allow_either("delivery/listing.rs list_page", "subscriptions where (account_id=?)",
        "those of one account, of which a page is sorted"),
    allow("accounts.rs ALL", "all of",
        "a command of the operator lists them all"),
    allow("accounts.rs COUNT", "subscriptions",
        "a command of the operator counts the subscriptions of an account before it removes them"),
    allow("secrets/rotation.rs count_rows", "all of",
        "a command of the operator counts the rows of a table before it reads them all"),
    allow_either("engine/migrate.rs CONTENT", "all of resources",
        "it ends at the first row, whichever that is"),
    allow("accounts.rs REMOVED", "accounts",
        "of few removed accounts, PostgreSQL reads the whole partial index"),
    allow("backfill.rs ENTRIES", "staged_entries",
        "a backfill that ends deletes all that it has staged"),
    allow("backfill/staging.rs COUNT", "staged_entries",
        "a backfill counts what it has staged, which its own limit bounds, once for each document"),
    allow("backfill/staging.rs RECORDED", "records",
        "of a short log, PostgreSQL reads the whole index instead of looking up each entry"),
    allow("backfill.rs PAGES", "backfill_visits",
        "a backfill that ends deletes all that it has noted"),
    allow("changes/hours.rs PARTS", "",
        "the parts of the hours that were deleted just before, at most a day"),
    allow("collections/cursors.rs SIZES", "records",
        "a cursor covers at most COLLECT_BATCH records"),
    allow("collections/collecting.rs OWED", "records",
        "a cursor covers at most COLLECT_BATCH records"),
    allow("collections/enqueue.rs OWE", "subscriptions",
        "subscriptions with an account, which may each have a collection; open ones are skipped"),
    allow("delivery/progress.rs TELLING", "subscriptions",
        "a client that waits for the effect of its ping asks how many subscriptions were notified"),
    allow("delivery/ping_forwarding.rs FORGET", "all of forwarded_pings",
        "once when a node starts"),
    allow("delivery/listing.rs list_page", "subscriptions where (callback",
        "only tests list without a topic and an account"),
    allow_either("delivery/listing.rs list_page", "subscriptions where (account_id = $1)",
        "those of one account with one callback, where PostgreSQL does not trust the index of callbacks"),
    allow("delivery/listing.rs list_page", "all of",
        "only tests list without a topic and an account"),
    allow("delivery/claim.rs READY", "subscriptions",
        "those of one backlog behind the place of the pass, until a portion is full"),
    allow("log/baseline.rs SET_BACK", "subscriptions",
        "once, of the subscriptions that were made before the first poll of a resource ended"),
    allow("log/baseline.rs SEND_NEWEST", "subscriptions",
        "once, of the subscriptions that were made before the first poll of a resource ended"),
    allow("log/entries.rs NOTED", "entries",
        "once a week for each resource"),
    allow("log/entries.rs OLD", "entries",
        "once a week for each resource"),
    allow("log/fan_out.rs BEHIND", "subscriptions",
        "a resource with more than CHUNK subscriptions is left to pending_fan_outs.rs"),
    allow("log/fan_out.rs LAGGING", "subscriptions",
        "only subscriptions that are notified of changes of the status"),
    allow("log/fan_out.rs TRY_AGAIN", "subscriptions",
        "only subscriptions that are notified of changes of the status"),
    allow("log/fan_out.rs PASS", "subscriptions",
        "updates that are not sent to everybody; of a large resource, only records that are sent to nobody"),
    allow("log/first_document.rs EARLIEST", "subscriptions",
        "once, before the first poll of a resource that could not be read"),
    allow("log/published_since.rs MADE_EARLIER", "subscriptions",
        "once, of the subscriptions that were made before the first poll of a resource ended"),
    allow("log/fan_out.rs SKIP", "subscriptions",
        "a silent poll is the first one of a resource"),
    allow("log/pages.rs OWED", "subscriptions",
        "only when pages of the resource are to be dropped"),
    allow("log/pages.rs OWED", "backlogs",
        "only when pages of the resource are to be dropped"),
    allow("log/pages.rs OWED", "kept_cursors",
        "only when pages of the resource are to be dropped"),
    allow("log/pages.rs READ", "records",
        "the records of one page"),
    allow("health.rs GAUGES", "",
        "counted at most once in a while, however often /metrics is requested"),
    allow("resources/forget.rs remove", "",
        "a resource that is forgotten is deleted with all its rows, FEW resources at a time; of most of them, PART"),
    allow("resources/forget.rs RECORDS", "records",
        "the statement before has found the range, of PART records"),
    allow("resources/forget.rs KEYS", "entry_keys",
        "the statement before has found the range, of PART entries"),
    allow("resources/forget.rs ENTRIES", "entries",
        "the statement before has found the range, of PART entries"),
    allow("resources/reschedule.rs NORMAL", "",
        "once when a node starts after a standstill"),
    allow("resources/schedule.rs PLANNED", "",
        "once a minute on one node: one narrow index, 0.3 s for a million resources"),
    allow_either("resources/survey.rs COUNT", "changes",
        "the pings of one hour, for a page that is cached"),
    allow_either("resources/survey.rs COUNT", "all of changes",
        "the pings of one hour, for a page that is cached"),
    allow("resources/survey.rs count", "subscriptions",
        "the statement before has found the range, of SUBSCRIPTIONS rows"),
    allow("search/filling.rs KNOWN", "search_entries",
        "a range covers at most INDEX_BATCH records"),
    allow("search/filling.rs UNINDEXED", "records",
        "a range covers at most INDEX_BATCH records"),
    allow("search/finding.rs INDEXED", "all of search_index",
        "an inverted index finds them, which is a bitmap and not shown here; the limit bounds their number"),
    allow("search/finding.rs NEWEST", "all of search_index",
        "FTS5 reads its index in the order of the rows up to the limit; it is no index of a table"),
    allow("search/removal.rs KEYS", "all of search_index",
        "FTS5 finds each row by its number; it is no index of a table"),
    allow("search/removal.rs OLD", "search_entries",
        "the entries of the pages that are dropped, at most FEW, or of a resource that is forgotten"),
    allow("log/append_budget.rs PAID", "subscriptions",
        "whether there is one: the first is enough"),
    allow("log/append_budget.rs PAID", "kept_cursors",
        "whether there is one: the first is enough"),
    allow("tracks/steps.rs IN_USE", "subscriptions",
        "whether there is one: the first is enough"),
    allow("tracks/steps.rs IN_USE", "kept_cursors",
        "whether there is one: the first is enough"),
    allow("tracks/steps.rs UNUSED", "subscriptions",
        "whether there is one: the first is enough"),
];

/// Statements that the contract suite does not run on one node with one cell. Each finds its rows by
/// a key, or is about a table that does not grow.
pub(super) const NEVER_RUN: &[&str] = &[
    // Two nodes create the same collection, or claim the same group, at the same moment.
    "collections.rs UNKNOW",
    "collections.rs UNMAKE",
    // `Tx::join_by_keys` sets how PostgreSQL plans, and reads no table.
    "engine/tx.rs JOIN_BY_KEYS",
    // There are several cells.
    "cells.rs MARK",
    "cells.rs START",
    "cells.rs SAVE",
    "cells.rs FIND",
    "collections/definitions.rs DEFINE",
    "collections/definitions.rs COPY",
    "collections/definitions.rs FIND",
    "cells/pacing.rs GROUP",
    "cells/pacing.rs DELAY",
    // A database is backed up or restored, or opened: they find out whether it has tables and rows.
    "backup.rs EXISTS",
    "backup.rs NEWEST",
    "backup.rs has_content",
    "engine/sqlite/wal.rs HAS_TABLES",
    // A database is copied: in chunks, in the order of the keys.
    "copy.rs COUNTERS",
    "copy/target.rs COUNT",
    "copy/copy_state.rs SAVE_PROPERTY",
    "copy/copy_state.rs UNMARK",
    "copy/source.rs CELLS",
    "copy/source.rs COLLECTED",
    "copy/source.rs EXISTS",
    "copy/source.rs GREATEST",
    "copy/source.rs TOPICS",
    "copy/source.rs read_chunk",
    "copy/target.rs COLUMNS",
    "copy/target.rs INSERT",
    "copy/target.rs SAVE",
    "copy/target.rs START",
    "copy/target.rs insert_into",
    // A command runs these once for each import, chunk of rows or moved subscription; they are tested
    // in tests/it/transfer.rs.
    "transfer/import_numbers.rs BEGIN",
    "transfer/import_numbers.rs RESERVE",
    "transfer/insertion.rs insert_into",
    "transfer/merge.rs HEADS",
    "transfer/merge.rs LOG",
    "copy/target.rs is_empty",
];
