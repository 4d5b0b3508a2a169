-- The search index: the keys of the entries that are stored. Everything here follows from the
-- records: a gateway whose database was copied builds it again.

-- One row is one entry that searches can find.
create table search_entries (
    position    {alias},                     -- search::SearchPosition::place
    resource_id bigint not null references resources (id),
    seq         bigint not null              -- of the newest record of the entry
);

-- Serves the deletion of entries that were replaced, or whose records are deleted.
create unique index search_entries_record on search_entries (resource_id, seq);

-- One row is the keys of one entry, by its position. SQLite stores only the inverted index.
{postgres create table search_index (rowid bigint primary key, keys tsvector not null)};
-- Serves find_possible_matches.
{postgres create index search_index_keys on search_index using gin (keys)};
{sqlite create virtual table search_index using fts5(keys, content='', contentless_delete=1, detail=none, tokenize=ascii)};

-- One row is one log with records that are not indexed yet.
create table search_cursors (
    resource_id {alias} references resources (id),
    cursor      bigint not null,             -- the last seq that was indexed
    upto        bigint not null,             -- the last seq that is to be indexed
    due_at      bigint not null              -- at once, or when a claim ends
);

-- Serves claim_unindexed.
create index search_cursors_due_at on search_cursors (due_at);
