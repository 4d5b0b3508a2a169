-- The log of each resource: numbered records that never change, the pages they are archived in, and
-- the known entries that distinguish new ones.

-- One row is one record of a log: an entry, an update of one, or its deletion.
create table records (
    resource_id   bigint not null references resources (id),
    seq           bigint not null,           -- 1, 2, 3 ... without gaps
    appended_at   bigint not null,
    kind          text   not null default 'new', -- record::RecordKind
    -- The audience of the record, from 0 (nobody) to 3 (every subscriber).
    audience      bigint not null default 3,
    -- seq of the record that it replaces; null: it replaces none.
    predecessor   bigint,
    -- In a collection: the resource from which the record was copied; null: its own.
    member_id     bigint,
    -- 1: an earlier record has the same entry id, so that archives give this one an id of its own.
    repeats_id    bigint not null default 0,
    -- The id in archives of the record that it replaces, as page::ArchivedId writes it; null: it
    -- replaces none.
    replaces_id   text,
    entry_hash    bytea  not null,           -- record::EntryKey of entry_id
    entry_id      text   not null,
    atom          text   not null,           -- one Atom <entry>
    primary key (resource_id, seq)
);

-- Serves find_seq, and the checks for earlier records with the same entry id.
create index records_entry_hash on records (resource_id, entry_hash, seq);
-- Serves read_current, which leaves out records that were replaced.
create index records_predecessor on records (resource_id, predecessor)
    where predecessor is not null;

-- One row is one page of a log: the range of records in one archive document. A page is filled
-- by appends, and never changes once another follows it.
create table pages (
    resource_id bigint not null references resources (id),
    page        bigint not null,             -- 1, 2, 3 ... without gaps
    first_seq   bigint not null,
    last_seq    bigint not null,
    bytes       bigint not null,             -- length of all its records
    begun_at    bigint not null,             -- when its first record was appended
    ended_at    bigint not null,             -- when its last record was appended
    primary key (resource_id, page)
) {compact};

-- One row is one entry that a resource was ever seen to contain. The row outlives the entry's place
-- in the document, so that an entry that reappears is not mistaken for a new one (rule N6).
create table entries (
    resource_id    bigint not null references resources (id),
    first_seq      bigint not null,          -- seq of its first record, by which it is identified
    newest_seq     bigint not null,          -- seq of its newest record
    digest         bytea  not null,          -- of its content; empty: not remembered
    title_digest   bytea  not null,          -- of its title; empty: not remembered
    published      bigint not null,          -- as the source says; 0: it says nothing
    updated        bigint not null,          -- as the source says; 0: it says nothing
    updates_sent   bigint not null default 0, -- how many updates of it had an audience
    -- When the newest update of the entry was appended; null: there is none.
    last_update_at bigint,
    seen_at        bigint not null,          -- when it was last recorded to be in the document
    deleted        bigint not null default 0, -- 1: its publisher has deleted it
    primary key (resource_id, first_seq)
) {compact};

-- One row is one key by which an entry is recognized: its id, link or text. The primary key finally
-- decides whether an entry is new (rule N11).
create table entry_keys (
    resource_id bigint not null references resources (id),
    key         bytea  not null,             -- record::EntryKey
    first_seq   bigint not null,             -- entries.first_seq
    -- 1: an id that the entry had only once, in place of its own.
    alias       bigint not null default 0,
    primary key (resource_id, key)
) {compact};

-- Serves the deletion of entries that are no longer remembered.
create index entry_keys_entry on entry_keys (resource_id, first_seq);

-- One row is the newest body of a resource, as it was received, for subscribers who receive the
-- document itself, and for resources that are not a feed.
create table bodies (
    resource_id     bigint not null references resources (id),
    version         bigint not null,         -- resources.body_version when it was stored
    content_type    text,                    -- as received; null: there was none
    hash            bytea  not null,         -- SHA-256 of bytes
    -- The digest of the document's meaning, without values that change by themselves (rule P11).
    semantic_digest bytea,
    bytes           bytea  not null,
    primary key (resource_id)
);

-- One row is a part of what was appended in a day to resources that an account watches. An account
-- has several rows, which are added up, so that appends to different resources seldom wait for the
-- same row.
create table account_appends (
    account_id  bigint not null,
    stripe      bigint not null,             -- chosen by the resource
    day         bigint not null,             -- days since 1970 in UTC
    bytes       bigint not null,             -- in this day, as log/append_budget.rs counts them
    used_up_day bigint not null default 0,   -- the last day on which the budget was used up
    primary key (account_id, stripe)
);
