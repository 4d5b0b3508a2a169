-- Who had a track opened, so that what it costs is charged to them.

-- The network of the client whose subscription opened the track last, as in subscriptions; 0: an account's
-- did, or nobody knows.
alter table tracks add column registrant_network bigint not null default 0;
-- Serves the number of open tracks of a network.
create index tracks_registrant_network on tracks (registrant_network) where is_open = 1;
