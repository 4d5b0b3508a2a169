-- The lists of the console: searched, filtered and ordered by the database, a page at a time.

-- One row is the name by which a feed is ordered in lists. Feeds from before this table get theirs by
-- index_names, which also finds them by database_properties.names.
create table resource_names (
    -- Nodes of the version before delete resources without knowing these tables.
    resource_id {alias} references resources (id) on delete cascade,
    -- feed_name::FeedName::order
    name        text {postgres collate "C"} not null,
    -- Minus the time of its newest entry, so that the feed that changed last comes first; 0: it has none.
    last_new    bigint not null default 0
);

-- Serves find_feeds, in the order of titles.
create index resource_names_name on resource_names (name, resource_id);
-- Serves find_feeds, in the order of last changes.
create index resource_names_last_new on resource_names (last_new, resource_id);

-- One row is one word by which a feed is found.
create table resource_words (
    resource_id bigint not null references resources (id) on delete cascade,
    word        text {postgres collate "C"} not null, -- of feed_name::FeedName::words
    primary key (resource_id, word)
) {compact};

-- Serves find_feeds: the feeds with words that begin like one of a search.
create index resource_words_word on resource_words (word, resource_id);

-- Serves find_feeds and list_counts: the feeds that fail.
create index resources_failing on resources (id) where failing = 1 and subscribers > 0;
-- Serves find_feeds: the feeds that were never fetched.
create index resources_new on resources (id) where fetched_at is null and subscribers > 0;
-- Serves find_feeds: the feeds that moved.
create index resources_moved on resources (id) where fetch_url <> topic and subscribers > 0;
-- Serves find_feeds: the feeds whose hub announces changes.
create unique index upstreams_trusted on upstreams (resource_id) where state = 'active' and is_trusted = 1;

-- Serves find_subscriptions and list_counts: those that fail.
create index subscriptions_failing on subscriptions (account_id, id)
    where failures > 0 and paused_at is null;
-- Serves find_subscriptions: those that are paused.
create index subscriptions_paused on subscriptions (account_id, id) where paused_at is not null;
-- Serves find_subscriptions: those with a callback at a host that begins so.
create index subscriptions_host on subscriptions (host {postgres collate "C"}, resource_id, id);

-- Serves accounts_page. SQLite has the same index of its own.
{postgres create index accounts_login on accounts (login collate "C")};

-- The last resource whose name was stored by index_names; 'complete': all have theirs.
insert into database_properties (name, value) values ('names', '0');
