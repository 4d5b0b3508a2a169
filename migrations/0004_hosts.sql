-- The servers that are polled: when each may be fetched from again, which of them refused, and
-- their robots.txt.

-- One row is one group of servers that share one rate limit: a single host and port, or a
-- platform that serves many hosts. At most one node fetches from a group at a time.
create table hosts (
    host             text   primary key,     -- host and port, or the name of the platform
    next_fetch_at    bigint not null,        -- when the next fetch may begin, on any node
    last_fetch_at    bigint not null,        -- when the last fetch began
    fetch_interval   bigint not null,        -- from the beginning of that fetch to the next
    -- No fetch before this; null: the host never requested a pause.
    backoff_until    bigint,
    -- Fetch interval learned from refusals; shrinks with time.
    learned_interval bigint not null default 0,
    last_backoff_at  bigint,                 -- when the last backoff began; null: there was none
    backoffs         bigint not null default 0, -- how many there were since a fetch last succeeded
    last_success_at  bigint,                 -- null: no fetch succeeded yet
    -- Until when fetches are planned, if more are due than the group can take; past: they are not.
    queue_end        bigint not null default 0
);

-- Serves paused_hosts.
create index hosts_backoff_until on hosts (backoff_until) where backoff_until is not null;

-- One row is the last time that a host refused one resource.
create table refusals (
    resource_id bigint not null,             -- in any cell
    host        text   not null,             -- hosts.host
    at          bigint not null,
    http_code   bigint not null,
    primary key (resource_id)
);

-- Serves refuse, which counts the recent refusals of a host.
create index refusals_host on refusals (host, at);
-- Serves prune.
create index refusals_at on refusals (at);

-- One row is the rules for feedgate by name in the robots.txt of one server.
create table robots (
    origin     text   primary key,
    fetched_at bigint not null,
    rules      text   not null               -- JSON of robots::Robots
);

-- Serves prune.
create index robots_fetched_at on robots (fetched_at);
