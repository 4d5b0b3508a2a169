-- Where each log is cut into pages, and by what names records go in an archive.

-- One row is one page of a log. It is decided when a record is appended, and a page that is
-- followed by another never changes again.
create table pages (
    resource_id bigint not null references resources (id),
    page        bigint not null,            -- 1, 2, 3 ... without gaps
    first       bigint not null,            -- seq of its first record
    last        bigint not null,            -- seq of its last record
    bytes       bigint not null,            -- of all its records together
    begun_at    bigint not null,            -- when its first record was appended
    ended_at    bigint not null,            -- when its last record was appended
    primary key (resource_id, page)
) {compact};

-- By the rule that held so far: so many records, whatever their length.
insert into pages (resource_id, page, first, last, bytes, begun_at, ended_at)
select resource_id, (seq - 1) / {page_records} + 1, min(seq), max(seq), sum(octet_length(atom)),
       min(at), max(at)
  from records
 group by resource_id, (seq - 1) / {page_records} + 1;

-- 1: a record before it has the id of its entry, and it goes by another in archives.
alter table records add column again bigint not null default 0;
-- What the record it takes the place of goes by in archives, as page::Named::kept has it.
-- null: it replaces none.
alter table records add column replaces text;

update records
   set again = 1
 where kind = 'update'
    or (kind <> 'deleted'
        and exists (select 1 from records e
                     where e.resource_id = records.resource_id
                       and e.entry_hash = records.entry_hash
                       and e.seq < records.seq and e.kind <> 'deleted'));

update records
   set replaces = (select case e.again when 1 then '#' || e.seq else e.entry_id end
                     from records e
                    where e.resource_id = records.resource_id and e.seq = records.predecessor)
 where kind = 'update' and predecessor is not null;
