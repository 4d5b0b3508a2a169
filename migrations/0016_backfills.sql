-- Bringing in what sources published before they were watched.

-- One row is the history of one resource, and how far it has been brought in.
create table backfills (
    resource_id bigint not null references resources (id),
    chain       text   not null default '', -- a word of backfill::Chain; empty: not known yet
    next_url    text,                       -- the document that is read next; null: the resource itself
    pages       bigint not null default 0,  -- documents read
    entries     bigint not null default 0,  -- entries laid aside
    bytes       bigint not null default 0,  -- bytes read
    barren      bigint not null default 0,  -- documents in a row without anything new
    attempts    bigint not null default 0,  -- at the next document
    known_by    text   not null default '', -- link: entries go by their links
    holds       bigint not null default 0,  -- 1: the resource is not polled before the end
    ending      text   not null default '', -- a word of backfill::Ending; empty: the way back goes on
    appended    bigint not null default 0,  -- entries that came into the log
    begun_at    bigint not null,
    ended_at    bigint,                     -- null: there is something to do
    due_at      bigint,                     -- null: there is not
    primary key (resource_id)
);

-- Serves claim_backfills.
create index backfills_due_at on backfills (due_at) where due_at is not null;

-- One row is a document that was read, so that no circle is followed.
create table backfill_pages (
    resource_id bigint not null references resources (id),
    url_hash    bytea  not null,            -- 16 bytes of SHA-256
    primary key (resource_id, url_hash)
) {compact};

-- One row is an entry laid aside, in the newest form that was seen of it.
create table backfill_entries (
    resource_id bigint not null references resources (id),
    key         bytea  not null,            -- record::EntryKey of entry_id
    page        bigint not null,            -- how far back it stands: 0 is the resource itself
    place       bigint not null,            -- in its page, oldest first
    entry_id    text   not null,
    digest      bytea  not null,            -- what it says
    title       bytea  not null,            -- a digest of its title
    published   bigint not null,            -- as its source says; 0: it does not
    updated     bigint not null,            -- as its source says; 0: it does not
    atom        text   not null,            -- one Atom <entry>
    primary key (resource_id, key)
);

-- Serves fill: oldest first.
create index backfill_entries_order on backfill_entries (resource_id, page desc, place);

-- 1: history is to be brought in once the callback has agreed.
alter table intents add column backfill bigint not null default 0;
