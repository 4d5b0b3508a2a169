-- changes.xml: lines that stay as they were written, and the hours that are over.

-- One row is one line: a ping, or a change that a poll saw and nobody pinged.
create table changes (
    id          {number},
    at          bigint not null,
    source      text   not null,            -- a word of ping::Source, or seen
    name        text   not null,
    url         text   not null,
    feed_url    text,
    resource_id bigint                      -- the first resource it concerns; null: none is watched
);

-- Serves changes, and keeping hours.
create index changes_at on changes (at, id);
-- Serves receive.
create index changes_seen on changes (resource_id, at) where source = 'seen';

-- Addresses with a password in them are listed for nobody.
insert into changes (at, source, name, url, feed_url, resource_id)
select at, source, name, url, feed_url, resource_id
  from (select p.at, p.source, p.name, p.url, coalesce(p.feed_url, r.topic) as feed_url,
               p.resource_id
          from pings p
          left join resources r on r.id = p.resource_id
        union all
        select f.at, 'seen', '', coalesce(r.site_url, r.topic), r.topic, r.id
          from fetches f
          join resources r on r.id = f.resource_id
         where f.appended > 0 and f.announced = 0) told
 where url not like '%://%@%' and coalesce(feed_url, '') not like '%://%@%'
 order by at;

drop table pings;
drop index fetches_unannounced;
drop index fetches_appended;
alter table fetches drop column announced;

-- One row is an hour that is over: what its document says never changes again.
create table hours (
    hour  bigint not null primary key,      -- its beginning
    unit  text   not null,                  -- a word of ping::Unit: how its document counts
    count bigint not null,                  -- pings received until it was kept
    parts bigint not null                   -- how many rows of hour_parts it has
);

-- One row is a page of the lines of such an hour, the newest in the first.
create table hour_parts (
    hour  bigint not null,
    part  bigint not null,                  -- from 0
    lines bytea  not null,                  -- JSON, gzip
    primary key (hour, part)
);
