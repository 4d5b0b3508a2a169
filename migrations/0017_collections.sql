-- Collections: resources that are never fetched, whose logs are fed by the logs of others.

-- One row is one collection.
create table collections (
    resource_id bigint not null references resources (id),
    name        text   not null unique,     -- as collection::Scope is kept
    account_id  bigint not null default 0,  -- whose subscriptions it follows; 0: nobody's
    is_open     bigint not null default 1,  -- 0: it takes in nothing more
    primary key (resource_id)
);

-- Serves tell.
create index collections_account on collections (account_id) where account_id <> 0;

-- One row is one resource that the operator put into a collection. It counts as a subscriber
-- of the resource, so that it is polled.
create table members (
    resource_id   bigint not null references resources (id),
    collection_id bigint not null,
    primary key (resource_id, collection_id)
) {compact};

-- Serves set_members.
create index members_collection on members (collection_id);

-- One row is a cursor that lags: a collection has yet to take in what stands behind it in the
-- log of a resource. A collection that has taken in everything has none.
create table collecting (
    resource_id   bigint not null references resources (id),
    collection_id bigint not null,
    cursor        bigint not null,          -- last seq that was taken in, or need not be
    upto          bigint not null,          -- last seq that is to be taken in
    due_at        bigint not null,          -- now, or a claim's end
    primary key (resource_id, collection_id)
) {compact};

-- Serves claim_collecting.
create index collecting_due_at on collecting (due_at);

-- The resource whose log a record was taken from; null: its own.
alter table records add column member_id bigint;
