-- Reading lists are claimed by their subscriptions, whose numbers are unique in a cell, in turns of their accounts;
-- and what is made for a list is counted whatever becomes of the reading.

-- Serves claim_reading_lists.
create index reading_lists_due on reading_lists (due_at, subscription_id, account_id);
drop index reading_lists_due_at;
-- Serves claim_reading_lists.
create unique index reading_lists_subscription on reading_lists (subscription_id);

-- The hour, in hours since 1970, in which subscriptions were last made for the list.
alter table reading_lists add column made_hour bigint not null default 0;
-- How many subscriptions may have been made in that hour.
alter table reading_lists add column made_in_hour bigint not null default 0;
