-- Backfill: importing the entries that a source published before it was watched. Entries are staged
-- while older documents are read, and then go into the log oldest first.

-- One row is the backfill of one resource, and how far it has come.
create table backfills (
    resource_id     bigint not null references resources (id),
    -- backfill::Chain: how older documents are linked; empty: not known yet.
    chain           text   not null default '',
    next_url        text,                    -- the document to read next; null: the resource itself
    pages           bigint not null default 0, -- documents read
    entries         bigint not null default 0, -- entries staged
    bytes           bigint not null default 0, -- bytes read
    empty_pages     bigint not null default 0, -- consecutive documents without a new entry
    attempts        bigint not null default 0, -- failed attempts at the next document
    -- How entries are identified: 'link' is by link; empty: by id.
    known_by        text   not null default '',
    -- 1: the resource is not polled before the backfill is done.
    delays_polling  bigint not null default 0,
    -- backfill::BackfillEnd: how reading ended; empty: it continues.
    result          text   not null default '',
    appended        bigint not null default 0, -- entries that went into the log
    started_at      bigint not null,
    ended_at        bigint,                  -- null: it is not done
    -- When the next step is due, or when a claim ends; null: it is done.
    due_at          bigint,
    -- The token that distinguishes this claim from all others; 0: the backfill is not claimed.
    claim_token     bigint not null default 0,
    primary key (resource_id)
);

-- Serves claim_backfills.
create index backfills_due_at on backfills (due_at) where due_at is not null;
-- Serves prune.
create index backfills_ended_at on backfills (ended_at) where ended_at is not null;

-- One row is one document that was read, so that links in a circle are not followed forever.
create table backfill_visits (
    resource_id bigint not null references resources (id),
    url_hash    bytea  not null,             -- 16 bytes of SHA-256
    primary key (resource_id, url_hash)
) {compact};

-- One row is one staged entry, in the newest form that was found.
create table staged_entries (
    resource_id  bigint not null references resources (id),
    key          bytea  not null,            -- record::EntryKey of entry_id
    -- How many documents back the entry was found; 0: in the resource itself.
    page         bigint not null,
    ordinal      bigint not null,            -- in its document, oldest first
    entry_id     text   not null,
    digest       bytea  not null,            -- of its content
    title_digest bytea  not null,            -- of its title
    published    bigint not null,            -- as the source says; 0: it says nothing
    updated      bigint not null,            -- as the source says; 0: it says nothing
    atom         text   not null,            -- one Atom <entry>
    primary key (resource_id, key)
);

-- Serves commit_staged: oldest first.
create index staged_entries_order on staged_entries (resource_id, page desc, ordinal);
