-- Which node serves the hosts of callbacks, so that the limit of a host is true for all nodes together.

-- Until when a node, if it goes on to report, serves a share of the hosts; 0: it serves none, or it is of an
-- earlier version, which delivers to all hosts.
alter table nodes add column serves_until bigint not null default 0;
-- Serves share_callback_hosts.
create index nodes_serves_until on nodes (serves_until);

-- Each host belongs to one of 128 slots, by a hash (callback_slots.rs). A slot without a row is free.
create table callback_slots (
    slot  bigint primary key,
    node  text   not null,                   -- `id` of the node that serves it, or did
    until bigint not null                    -- when the lease of the node ends; 0: the node has given it up
) {compact};
