-- Watched resources: where they are fetched, when they are polled next, and the upstreams that they
-- advertise.
--
-- Conventions of all files here:
--
-- * SQLite and PostgreSQL run the same text. Differences are written in braces (see sql.rs of the
--   store): {number} is a primary key that the database numbers, {serial} such a number that is
--   only part of the {key}, {alias} a primary key numbered elsewhere, {compact} stores a table in
--   the order of its key, and {roomy} leaves room for a second version of each row, so that
--   PostgreSQL extends no index when columns without one change.
-- * Times are microseconds since 1970 in UTC, durations are microseconds unless the name of the
--   column says otherwise, booleans are 0 and 1, and documents of this program are JSON.
-- * Tables about one resource begin their keys with its number, so that all rows of a resource can
--   be kept together.
-- * Wide columns come last: SQLite reads past them to reach the columns behind.
-- * An index names the statements that need it; a table without one is read by its key.

-- One row is one watched resource, or one collection of resources. Every poll writes this row, so
-- it is narrow; columns that seldom change are in resource_details.
create table resources (
    id               {number},
    -- The URL of the resource, byte for byte as the first subscriber sent it.
    topic            text   not null unique,
    -- The URL that is polled; differs after a permanent redirect.
    fetch_url        text   not null,
    host             text   not null,          -- the host group of fetch_url (hosts.host)
    site_url         text,                     -- the web site that the feed belongs to
    kind             text   not null,          -- resource_id::ResourceKind
    head             bigint not null default 0, -- the greatest seq of its log; 0: the log is empty
    body_version     bigint not null default 0, -- how often its body changed (bodies.version)
    failing          bigint not null default 0, -- 1: its status is an error
    -- Subscriptions and collection memberships of the resource; 0: not polled.
    subscribers      bigint not null default 0,
    -- Since when there are no subscribers; null: there are some, or maintenance has not checked
    -- yet.
    unwatched_since  bigint,
    -- 1: there has been a subscription or a collection membership.
    was_watched      bigint not null default 0,
    next_fetch       bigint not null,          -- when the schedule or a ping plans the next fetch
    -- When the resource may be claimed: next_fetch, unless something delays it.
    due_at           bigint not null,
    -- Until when a node polls it, by the clock of the database; null: no node does.
    claimed_until    bigint,
    -- The token that distinguishes this claim from all others; 0: no node polls it.
    claim_token      bigint not null default 0,
    -- Why the resource was delayed since its last poll; null: it was not.
    delay_reason     text,
    fetched_at       bigint,                   -- when the last poll ended; null: never polled
    -- 1: a ping waits for a poll; 2: the current poll is the response to the ping.
    pinged           bigint not null default 0,
    -- The least time from the last fetch to one that a ping causes.
    ping_interval    bigint not null default 0,
    -- How many gateways the newest notification about it from an upstream had passed; 0: a poll of
    -- the schedule found something since.
    hops             bigint not null default 0,
    -- When the appends for subscribers without an account are paid for (log/append_budget.rs); 0:
    -- there were none.
    appends_paid_at  bigint not null default 0,
    -- Seconds between polls by the last decision; 0: none yet.
    period_s         bigint not null default 0,
    -- The minimum of the period, whatever the poll budget allows.
    min_period_s     bigint not null default 3600,
    -- The period before the poll budget stretches it; 0: it is not stretched.
    base_period_ms   bigint not null default 0,
    -- How often the status went into or out of error, to gone, or moved.
    status_version   bigint not null default 0,
    -- The number of status changes without false alarms, which were soon over.
    announced_status_version bigint not null default 0,
    measured_at      bigint not null,          -- when its velocity was last measured
    -- JSON of the details that every poll changes; empty: nothing yet.
    poll_times       text   not null default ''
);

-- Serves claim_resources: due resources, longest due first, in a stable order.
create index resources_due_at on resources (due_at, id) where subscribers > 0;
-- Serves refuse, which delays the due resources of a host.
create index resources_host on resources (host, due_at) where subscribers > 0;
-- Serves planned, which sums up once a minute the polls that the poll budget has to pay for.
create index resources_demand on resources (min_period_s, base_period_ms) where subscribers > 0;
-- Serves measure.
create index resources_measured_at on resources (measured_at);
-- Serves forget_unwatched, both its steps.
create index resources_unwatched on resources (unwatched_since)
    where subscribers = 0 and kind <> 'collection';
-- Serves forget_never_watched.
create index resources_never_watched on resources (unwatched_since)
    where was_watched = 0 and subscribers = 0 and kind <> 'collection';

-- One row is a number that a resource had in the database that this one was copied from. Archives
-- are found by it as before. Numbers of resources that exist are never in here.
create table former_numbers (
    former_id   {alias},
    resource_id bigint not null              -- in any cell, and perhaps forgotten since
);

-- One row is the details of one resource, which seldom change.
create table resource_details (
    resource_id {alias} references resources (id),
    status      text   not null,             -- JSON of status::Status
    -- JSON of poll::Polling: validators, measurements, redirects.
    polling     text   not null,
    -- The feed in Atom without its entries; empty: it is no feed.
    feed_head   text   not null default ''
);

-- One row is one URL by which a ping may name a resource. Only hashes are stored, because a URL
-- may be longer than an index entry.
create table resource_urls (
    resource_id bigint not null references resources (id),
    role        text   not null,             -- topic, fetch or site
    -- 16 bytes of SHA-256 of the URL without scheme and final slash.
    url_hash    bytea  not null,
    primary key (resource_id, role)
);

-- Serves receive: which resources a ping names.
create index resource_urls_hash on resource_urls (url_hash);

-- One row is one permanent redirect that was followed for good: the resource is fetched at
-- another URL from then on. Its topic never changes.
create table moves (
    id          {serial},
    resource_id bigint not null references resources (id),
    at          bigint not null,             -- when fetch_url was replaced
    from_url    text   not null,
    to_url      text   not null,
    undone_at   bigint,                      -- when an operator took it back; null: nobody did
    {key} (resource_id, id)
);

-- Serves prune.
create index moves_at on moves (at);

-- One row is the hub or rssCloud server that a resource advertises, and our subscription there.
create table upstreams (
    resource_id bigint not null references resources (id),
    protocol    text   not null,             -- subscription::Protocol
    -- The procedure that registers; empty: the protocol has none.
    procedure   text   not null,
    endpoint    text   not null,             -- URL of the hub or rssCloud server
    host        text   not null default '',  -- of endpoint, with the port
    topic       text   not null,             -- the URL by which the upstream knows the resource
    -- Names the subscription in our callback URL; serves upstream.
    token       text   not null unique,
    secret      text   not null,             -- signs what the upstream sends
    state       text   not null,             -- upstream::UpstreamState
    lease_until bigint,                      -- null: it was never confirmed
    failures    bigint not null default 0,   -- consecutive failed subscription requests
    pushed      bigint not null default 0,   -- entries that arrived by push first
    missed      bigint not null default 0,   -- entries that a poll found first
    is_trusted  bigint not null default 0,   -- 1: it has proved itself, so polls may be rare
    pushed_at   bigint,                      -- when it last announced a change; null: never
    -- When to subscribe, retry or renew, or when a claim ends.
    due_at      bigint not null,
    -- The token that distinguishes this claim from all others; 0: the upstream is not claimed.
    claim_token bigint not null default 0,
    primary key (resource_id)
);

-- Serves claim_upstreams.
create index upstreams_due_at on upstreams (due_at, resource_id);
