-- changes.xml: the list of changes, and the documents of past hours.

-- One row is one line of changes.xml: a ping, or a change that a poll found without one.
create table changes (
    id          {number},
    at          bigint not null,
    source      text   not null,             -- ping::PingSource, or seen: a poll found it
    name        text   not null,             -- title of the web site
    url         text   not null,             -- of the web site
    feed_url    text,
    -- The first resource that the change concerns; null: none is watched.
    resource_id bigint
);

-- Serves changes, and storing an hour that is over.
create index changes_at on changes (at, id);
-- Serves receive: a ping replaces the line of a poll that found the same change.
create index changes_seen on changes (resource_id, at) where source = 'seen';

-- One row is one hour that is over. Its document never changes again.
create table change_hours (
    hour  bigint not null primary key,       -- its beginning
    -- ping::TimeUnit: how the document states the age of a change.
    unit  text   not null,
    count bigint not null,                   -- pings received until the hour was stored
    parts bigint not null                    -- how many rows of change_hour_parts it has
);

-- One row is one part of the lines of an hour that is over, the newest lines in the first part.
create table change_hour_parts (
    hour  bigint not null,
    part  bigint not null,                   -- from 0
    lines bytea  not null,                   -- JSON, compressed with gzip
    primary key (hour, part)
);
