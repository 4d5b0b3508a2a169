-- The log of every resource, and everything that reads or feeds it.
--
-- Both databases run this text. What they spell differently stands in braces
-- (src/store/sql.rs): {number} is a primary key numbered by the database, {serial} such
-- a number that is only part of the {key}, {compact} keeps a table in its key's order.
-- Times are microseconds since 1970 in UTC, booleans are 0 and 1, documents of our own
-- are JSON. All tables of one resource carry its number first in their keys, so that
-- PostgreSQL can be sharded by it.

-- One row is one account: who may subscribe with a token.
create table accounts (
    id         {number},
    login      text   not null unique,
    created_at bigint not null
);

-- One row is one token of an account: a hash of it, never the token itself.
create table tokens (
    id         {number},
    account_id bigint not null references accounts (id),
    name       text   not null,             -- what its owner calls it
    rights     text   not null,             -- words of account::Right, separated by spaces
    hash       bytea  not null unique,      -- SHA-256; serves authenticate
    created_at bigint not null,
    revoked_at bigint                       -- null: it still opens
);

-- One row is one watched resource: who it is, where it stands, when it is due.
create table resources (
    id            {number},
    topic         text   not null unique,   -- byte for byte as the first subscriber wrote it
    fetch_url     text   not null,          -- where it is polled
    host          text   not null,          -- of fetch_url, with the port
    site_url      text,                     -- the web site the feed belongs to
    kind          text   not null,          -- a word of resource::Kind
    head          bigint not null default 0, -- greatest seq of its log
    body_version  bigint not null default 0, -- version of its newest body
    feed_head     text   not null default '',
    status        text   not null,          -- JSON of status::Status
    polling       text   not null,          -- JSON of poll::Polling
    failing       bigint not null default 0, -- whether its status is an error
    subscribers   bigint not null default 0, -- how many rows of subscriptions it has
    next_fetch    bigint not null,          -- when the schedule or a ping wants it
    due_at        bigint not null,          -- when it is handed out: next_fetch, or a claim's end
    claimed_until bigint,                   -- null: nobody is on it
    fetched_at    bigint,                   -- end of the last poll
    pinged        bigint not null default 0, -- 1: pinged, 2: the poll in hand answers that ping
    spacing       bigint not null default 0, -- least microseconds to the fetch that a ping wants
    measured_at   bigint not null           -- end of its last maintenance cycle
);

-- Serves claim_resources: what is due, longest due first.
create index resources_due_at on resources (due_at) where subscribers > 0;
-- Serves claim_resources when one host fills the front of the queue.
create index resources_host on resources (host, due_at) where subscribers > 0;
-- Serves measure.
create index resources_measured_at on resources (measured_at);

-- One row is one address by which a ping may name a resource. Only hashes are kept:
-- an address is longer than an index entry may be.
create table addresses (
    resource_id bigint not null references resources (id),
    role        text   not null,            -- topic, fetch or site
    hash        bytea  not null,            -- 16 bytes of SHA-256 (src/store/pings.rs)
    primary key (resource_id, role)
);

-- Serves receive.
create index addresses_hash on addresses (hash);

-- One row is the newest body of a resource, as it was received.
create table bodies (
    resource_id  bigint not null references resources (id),
    version      bigint not null,           -- the resource's body_version
    content_type text,                      -- as received; null: there was none
    hash         bytea  not null,           -- SHA-256 of bytes
    bytes        bytea  not null,
    primary key (resource_id)
);

-- One row is one record of a log. It never changes.
create table records (
    resource_id bigint not null references resources (id),
    seq         bigint not null,            -- 1, 2, 3 ... without gaps
    at          bigint not null,            -- when it was appended
    entry_hash  bytea  not null,            -- record::EntryKey of entry_id
    entry_id    text   not null,
    atom        text   not null,            -- one Atom <entry>
    primary key (resource_id, seq)
);

-- Serves seq_of.
create index records_entry_hash on records (resource_id, entry_hash, seq);

-- One row is one entry that a resource was ever seen to hold (rule N6). It outlives
-- its record, so that what slides back into a feed is not news again. The key is the
-- last judge of what is new (rule N11).
create table entry_keys (
    resource_id bigint not null references resources (id),
    key         bytea  not null,            -- record::NewRecord::key
    seen_at     bigint not null,            -- when it was appended
    primary key (resource_id, key)
) {compact};

-- One row is one subscription: whom to tell, how, and how far they have been told.
create table subscriptions (
    id            {serial},
    resource_id   bigint not null references resources (id),
    account_id    bigint not null,          -- 0: open, nobody's
    callback      text   not null,
    host          text   not null,          -- of the callback, with the port
    protocol      text   not null,          -- a word of subscription::Protocol
    procedure     text   not null,          -- empty: the protocol has none
    format        text   not null,          -- a word of subscription::Format
    secret        text,                     -- null: deliveries are not signed
    cursor        bigint not null,          -- last number the callback acknowledged
    replay_from   bigint,                   -- cursor to go back to when the delivery in hand ends
    tried         bigint not null default 0, -- number up to which it was owed when last claimed
    failures      bigint not null default 0, -- consecutive failed attempts
    failing_since bigint,                   -- when the first of them was
    lease_until   bigint not null,
    created_at    bigint not null,
    due_at        bigint,                   -- null: nothing to tell; else now, a retry's time, or a claim's end
    claimed_until bigint,                   -- null: nobody is on it
    {key} (resource_id, id),
    unique (resource_id, account_id, callback, protocol)
);

-- Serves claim_subscriptions: what is due, longest due first.
create index subscriptions_due_at on subscriptions (due_at) where due_at is not null;
-- Serves claim_subscriptions when one host fills the front of the queue.
create index subscriptions_host on subscriptions (host, due_at) where due_at is not null;
-- Serves list.
create index subscriptions_account on subscriptions (account_id, id);
-- Serves drop_expired.
create index subscriptions_lease_until on subscriptions (lease_until);

-- One row is one (un)subscription that still has to be verified.
create table intents (
    id           {number},
    hash         bytea  not null unique,    -- of account, topic, callback and protocol
    mode         text   not null,           -- a word of intent::Mode
    account_id   bigint not null,           -- 0: open, nobody's
    topic        text   not null,
    callback     text   not null,
    protocol     text   not null,
    procedure    text   not null,
    format       text   not null,
    secret       text,
    lease_s      bigint not null,
    verify_token text,
    attempts     bigint not null default 0,
    due_at       bigint not null            -- now, a retry's time, or a claim's end
);

-- Serves claim_intents.
create index intents_due_at on intents (due_at);

-- One row is one ping as it was received.
create table pings (
    id          {number},
    at          bigint not null,
    source      text   not null,            -- a word of ping::Source
    name        text   not null,
    url         text   not null,
    feed_url    text,
    resource_id bigint                      -- the first resource it named; null: none is watched
);

-- Serves changes and prune.
create index pings_at on pings (at);

-- One row counts something that outlives what is counted.
create table counters (
    name  text   primary key,
    count bigint not null
);

-- One row is how one poll of a resource ended.
create table fetches (
    id          {serial},
    resource_id bigint not null references resources (id),
    at          bigint not null,
    trigger     text   not null,            -- a word of poll::Trigger
    outcome     text   not null,
    http_code   bigint not null,
    took_ms     bigint not null,
    wire_bytes  bigint not null,
    appended    bigint not null,            -- how many records it added
    announced   bigint not null,            -- 1: a ping tells of the same change
    {key} (resource_id, id)
);

-- Serves prune.
create index fetches_at on fetches (at);
-- Serves changes.
create index fetches_unannounced on fetches (at) where appended > 0 and announced = 0;
-- Serves receive.
create index fetches_appended on fetches (resource_id, at) where appended > 0;

-- One row is a publisher's server that asked to be left alone.
create table hosts (
    host       text   primary key,          -- with the port
    cool_until bigint not null
);

-- One row is a chore of upkeep, and until when it is some node's.
create table chores (
    name       text   primary key,
    held_until bigint not null
);
