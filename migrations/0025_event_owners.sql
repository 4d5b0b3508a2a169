-- Events of strangers do not push out those of accounts.

-- Serves trim_events, which keeps a number of events of each kind of accounts.
create index events_of_accounts on events (kind, id) where account_id <> 0;
-- Serves trim_events, which keeps a number of events of each kind of others.
create index events_of_others on events (kind, id) where account_id = 0;
