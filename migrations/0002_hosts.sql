-- What is known of publishers' servers, and what was decided because of it.

-- It held cooldowns of some hours at most.
drop table hosts;

-- One row is one group of servers that is limited together (limit::Groups).
create table hosts (
    host       text   primary key,           -- a host and port, or the name of a platform
    free_at    bigint not null,              -- when the next fetch may begin, on any node
    begun_at   bigint not null,              -- when the last one did
    pause      bigint not null,              -- microseconds from there to the next
    cool_until bigint,                       -- null: it never asked to be left alone
    spacing    bigint not null default 0,    -- microseconds learned from it
    slowed_at  bigint,                       -- when that was
    slow_downs bigint not null default 0,    -- in a row
    well_at    bigint                        -- when it last answered well
);

-- Serves claim_resources.
create index hosts_free_at on hosts (free_at);

-- One row is the last time that one URL was refused.
create table refusals (
    resource_id bigint not null references resources (id),
    host        text   not null,             -- the group that did it
    at          bigint not null,
    http_code   bigint not null,
    primary key (resource_id)
);

-- Serves refuse.
create index refusals_host on refusals (host, at);
-- Serves prune.
create index refusals_at on refusals (at);

-- Why a resource was put off since its last poll; null: it was not.
alter table resources add column put_off_why text;

-- What must be known of this database as a whole.
create table facts (
    name  text primary key,
    value text not null
);

-- One row is one time that a resource was fetched somewhere else from then on (rule P20).
-- The topic never changes.
create table moves (
    id          {serial},
    resource_id bigint not null references resources (id),
    at          bigint not null,
    from_url    text   not null,
    to_url      text   not null,
    undone_at   bigint,                      -- null: it still holds, or a later one does
    {key} (resource_id, id)
);

-- One row is what one server says to us by name in its robots.txt.
create table robots (
    origin   text   primary key,
    asked_at bigint not null,
    rules    text   not null                 -- JSON of robots::Robots
);

-- Serves prune.
create index robots_asked_at on robots (asked_at);
