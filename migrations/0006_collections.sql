-- Collections: resources that are never fetched, and whose logs receive the records of other
-- resources.

-- One row is one collection. In a store of several cells, each cell has the rows of all of them.
create table collections (
    resource_id bigint not null,
    name        text   not null unique,      -- collection::CollectionKind in its stored form
    account_id  bigint not null default 0,   -- the account whose subscriptions it follows; 0: none
    is_open     bigint not null default 1,   -- 0: it takes in nothing more
    primary key (resource_id)
);

-- Serves appends, which look up whose collections a record goes to, and close_collections.
create index collections_account on collections (account_id);

-- One row is one resource that the operator put into a collection. The row counts as a subscriber
-- of the resource, so that the resource is polled.
create table collection_members (
    resource_id   bigint not null references resources (id),
    collection_id bigint not null,
    primary key (resource_id, collection_id)
) {compact};

-- Serves set_members.
create index collection_members_collection on collection_members (collection_id);

-- One row is one cursor of a collection that lags behind the log of a resource. A collection that
-- has collected everything has no row.
create table collection_cursors (
    resource_id   bigint not null references resources (id),
    collection_id bigint not null,
    cursor        bigint not null,           -- the last seq that was taken in
    upto          bigint not null,           -- the last seq that is to be taken in
    due_at        bigint not null,           -- at once, or when a claim ends
    primary key (resource_id, collection_id)
) {compact};

-- Serves claim_collecting.
create index collection_cursors_due_at on collection_cursors (due_at);

-- One row is how far a collection has taken the log of a resource that lies in another cell, or a
-- track that of any resource.
create table collected (
    collection_id bigint not null,           -- never forgotten
    resource_id   bigint not null,
    upto          bigint not null,           -- the last seq that was taken in
    at            bigint not null,           -- when that was
    primary key (collection_id, resource_id)
) {compact};

-- Serves prune.
create index collected_at on collected (at);

-- One row is one track: a query, and the log of the entries that match. In a store of several cells,
-- the shared schema has all rows, and each log is in the cell of its topic. All tracks together have
-- one cursor in the log of a resource, that of the collection 0.
create table tracks (
    resource_id bigint not null,             -- the log
    query       text   not null unique,      -- query::Query in its normal form
    is_open     bigint not null default 1,   -- 0: it takes in nothing more
    version     bigint not null,             -- greater than that of any change of a track before
    -- When the track was opened, closed, or found to have subscriptions.
    checked_at  bigint not null,
    primary key (resource_id)
);

-- Serves track_changes.
create index tracks_version on tracks (version, resource_id);
-- Serves close_unused_tracks and forget_tracks.
create index tracks_checked_at on tracks (is_open, checked_at);
