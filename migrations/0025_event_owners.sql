-- Events of strangers do not push out those of accounts.

-- Both serve trim_events, which keeps a number of events of each kind of accounts, and of others.
create index events_of_accounts on events (kind, id) where account_id <> 0;
create index events_of_others on events (kind, id) where account_id = 0;
