-- Who may see a resource (visibility.rs of feedgate-core): where its documents came from, and whether
-- strangers subscribe to it.

-- visibility::SourceNetwork: 0 until a fetch has shown that its documents come from the public internet (1), or
-- from an address that is not public and that the operator allowed (2).
alter table resources add column source_network bigint not null default 0;

-- 1: the event is about a feed that strangers may not find; only its owner and the operator see it.
alter table events add column is_unlisted bigint not null default 0;

-- Serves all that read whether strangers subscribe to a resource.
create index subscriptions_open on subscriptions (resource_id) where account_id = 0;
