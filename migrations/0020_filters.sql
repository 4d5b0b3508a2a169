-- Which entries a subscriber is sent.

-- The query that entries must match: query::EntryFilter; null: all are sent.
alter table subscriptions add column entry_filter text;
-- As in subscriptions.
alter table intents add column entry_filter text;
