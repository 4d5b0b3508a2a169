-- The clock by which everything is due.

-- The one row says when a node last read the clock of the database, and what is done because that clock was
-- set: all due times are moved by as much (clock.rs of the store).
create table clocks (
    id         {alias},                      -- 1
    -- The greatest time, by the clock of the database, at which a node is known to have worked; 0: none.
    seen_at    bigint not null default 0,
    -- The run of the machine in which that was, and the time since its start; empty: not known.
    boot       text   not null default '',
    since_boot bigint not null default 0,
    generation bigint not null default 0,    -- how often the clock was set
    moved_by   bigint not null default 0,    -- by how much it was set last
    is_moving  bigint not null default 0,    -- 1: not all due times are moved yet
    -- How far that has come: the place in due_times::TABLES, and the key of the last row in that table.
    step       bigint not null default 0,
    first_key  bigint not null default 0,
    second_key bigint not null default 0
);
insert into clocks (id) values (1);
