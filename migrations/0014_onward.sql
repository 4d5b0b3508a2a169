-- Pings that go on to sinks.

-- One row is one change that one sink has to be told of.
create table onward (
    id       {number},
    hash     bytea  not null unique,        -- of sink and feed
    sink     text   not null,               -- sink::Sink::name
    name     text   not null,               -- what the weblog is called
    url      text   not null,
    feed_url text   not null,
    version  bigint not null default 1,     -- how many changes it tells of
    attempts bigint not null default 0,
    due_at   bigint not null                -- now, a retry's time, or a claim's end
);

-- Serves claim_sink.
create index onward_due_at on onward (sink, due_at);
