-- What changes with every poll, apart from what seldom does: most polls find nothing, and
-- write no more than a narrow row.

-- {alias} is a primary key that is numbered elsewhere.

-- One row is what is known of a resource and seldom changes.
create table details (
    resource_id {alias} references resources (id),
    feed_head   text   not null default '',  -- the feed without its entries
    status      text   not null,             -- JSON of status::Status
    polling     text   not null              -- JSON of poll::Polling
);

insert into details (resource_id, feed_head, status, polling)
select id, feed_head, status, polling from resources;

alter table resources drop column feed_head;
alter table resources drop column status;
alter table resources drop column polling;

-- Serves claim_resources: what is due, longest due first, and of the same moment in order.
drop index resources_due_at;
create index resources_due_at on resources (due_at, id) where subscribers > 0;

-- It was written twice for each poll. SQLite looks the few hosts up that a claim is about.
{sqlite drop index hosts_free_at;}

-- JSON of pace::Pace, which stands above the details; empty: never polled since.
alter table resources add column pace text not null default '';
