-- The nodes: the processes that share this database.

-- One row is one start of a gateway. A node deletes its row when it is shut down; a node that was killed
-- leaves it behind, until maintenance deletes it a day later.
create table nodes (
    id         text   primary key,           -- random, chosen by the node when it starts
    name       text   not null,              -- the name of its host, or what the operator chose
    version    text   not null,              -- of the program
    started_at bigint not null,              -- by the clock of the database, as seen_at
    seen_at    bigint not null               -- when the node last reported
);

-- Serves nodes and prune.
create index nodes_seen_at on nodes (seen_at);
