-- Hubs and clouds that resources advertise, and our subscriptions there.

-- One row is the upstream of one resource.
create table upstreams (
    resource_id bigint not null references resources (id),
    protocol    text   not null,            -- a word of subscription::Protocol
    procedure   text   not null,            -- the one that registers; empty: there is none
    endpoint    text   not null,            -- of the hub or the cloud
    topic       text   not null,            -- the resource, as the upstream knows it
    token       text   not null unique,     -- of our address; serves upstream
    secret      text   not null,
    state       text   not null,            -- a word of upstream::State
    lease_until bigint,                     -- null: it never held
    failures    bigint not null default 0,  -- consecutive requests that came to nothing
    pushed      bigint not null default 0,  -- entries that came by push first
    missed      bigint not null default 0,  -- entries that a poll found first
    relied      bigint not null default 0,  -- whether polls may be rare
    pushed_at   bigint,                     -- when it last told of anything
    due_at      bigint not null,            -- now, a retry's or renewal's time, or a claim's end
    primary key (resource_id)
);

-- Serves claim_upstreams.
create index upstreams_due_at on upstreams (due_at);
