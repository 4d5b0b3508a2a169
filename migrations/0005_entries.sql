-- What is known of each entry, so that what is news is judged by more than its id (rules
-- N3 to N8), and records that are no news.

-- One row is one entry that a resource was ever seen to hold (rule N6). It outlives what
-- the document holds, so that what slides back into a feed is not news again.
create table entries (
    resource_id bigint not null references resources (id),
    first       bigint not null,            -- seq of its first record, by which it is named
    newest      bigint not null,            -- seq of its newest record
    digest      bytea  not null,            -- what it says; empty: not remembered
    title       bytea  not null,            -- a digest of its title
    published   bigint not null,            -- as its source says; 0: it does not
    updated     bigint not null,            -- as its source says; 0: it does not
    revised     bigint not null default 0,  -- how many updates of it were sent
    revised_at  bigint,                     -- when the newest update was appended
    seen_at     bigint not null,            -- when it was last noted to be in the document
    deleted     bigint not null default 0,  -- 1: its publisher has taken it back
    primary key (resource_id, first)
) {compact};

insert into entries (resource_id, first, newest, digest, title, published, updated, seen_at)
select r.resource_id, min(r.seq), max(r.seq), substr(r.entry_hash, 1, 0), substr(r.entry_hash, 1, 0), 0, 0,
       max(k.seen_at)
  from records r
  join entry_keys k on k.resource_id = r.resource_id and k.key = r.entry_hash
 group by r.resource_id, r.entry_hash;

alter table entry_keys rename to old_keys;

-- One row is one name by which an entry is known. The key is the last judge of what is new
-- (rule N11).
create table entry_keys (
    resource_id bigint not null references resources (id),
    key         bytea  not null,            -- record::EntryKey
    entry       bigint not null,            -- entries.first
    alias       bigint not null default 0,  -- 1: the id it was last seen to go by instead
    primary key (resource_id, key)
) {compact};

insert into entry_keys (resource_id, key, entry)
select resource_id, entry_hash, min(seq)
  from records r
 where exists (select 1 from old_keys k
                where k.resource_id = r.resource_id and k.key = r.entry_hash)
 group by resource_id, entry_hash;

drop table old_keys;

-- Serves forget.
create index entry_keys_entry on entry_keys (resource_id, entry);

alter table records add column kind text not null default 'new'; -- a word of record::RecordKind
alter table records add column reach bigint not null default 3;  -- record::Reach::number
alter table records add column predecessor bigint;               -- seq of the record it replaces

-- Serves read_current: what has been replaced is found by its number.
create index records_predecessor on records (resource_id, predecessor)
    where predecessor is not null;

-- What a document says, where that is not its bytes (rule P11).
alter table bodies add column meaning bytea;

-- Which updates are sent (rule N7): a word of subscription::Updates.
alter table subscriptions add column updates text not null default 'fresh';
alter table intents add column updates text not null default 'fresh';

-- rssCloud tells that a document changed, not which entries are new: its cursors run over
-- versions of the body, as those of subscribers who want the topic as it is.
update subscriptions
   set format = 'raw', due_at = null, claimed_until = null, replay_from = null,
       cursor = (select body_version from resources where id = subscriptions.resource_id)
 where protocol <> 'websub';
