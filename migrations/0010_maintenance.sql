-- The state that all nodes share to keep the database in order.

-- One row is one maintenance task, and until when a node has claimed it.
create table maintenance_tasks (
    name          text   primary key,
    claimed_until bigint not null
);

-- One row is one total that must not shrink when the rows that were counted are deleted.
create table counters (
    name  text   primary key,
    count bigint not null
);

-- One row is one number that all nodes follow, such as the factor of the poll budget, which a
-- maintenance task adjusts.
create table control_values (
    name  text   primary key,
    value bigint not null                    -- in millionths; of a version, its number
);

-- One row is one key that secrets in this database may be encrypted with.
create table secret_keys (
    id          text primary key,            -- of the key, as envelopes name it (envelope.rs)
    check_value text not null                -- a known text, encrypted with the key
);

-- One row is one property of this database as a whole, such as the fingerprint of the host
-- groups that resources were last sorted by.
create table database_properties (
    name  text primary key,
    value text not null
);
