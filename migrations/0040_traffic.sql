-- What happened in the minutes and hours of the last time, of all nodes together. Each node adds what it has counted
-- once a minute (traffic.rs of the store). What is stored is traffic::TrafficCounts, which adds up.

-- One row is what the gateway did in one minute of the last day, or in one hour of the last month.
create table gateway_traffic (
    unit_s bigint not null, -- 60 or 3600
    at     bigint not null, -- when the minute or hour begins
    counts bytea  not null default {postgres ''}{sqlite x''},
    primary key (unit_s, at)
) {compact};

-- One row is one hour of one feed in which it had something new, failed or was delivered.
create table resource_traffic (
    -- Nodes of the version before delete resources without knowing this table.
    resource_id bigint not null references resources (id) on delete cascade,
    at          bigint not null, -- when the hour begins
    counts      bytea  not null default {postgres ''}{sqlite x''},
    primary key (resource_id, at)
) {compact};

-- Serves trim_traffic.
create unique index resource_traffic_at on resource_traffic (at, resource_id);

-- One row is one hour of deliveries to the callbacks at one host.
create table host_traffic (
    host   text   not null, -- with its port, as in subscriptions.host
    at     bigint not null, -- when the hour begins
    counts bytea  not null default {postgres ''}{sqlite x''},
    primary key (host, at)
) {compact};

-- Serves trim_traffic.
create unique index host_traffic_at on host_traffic (at, host);

-- One row is one hour of deliveries to the subscriptions of one account.
create table account_traffic (
    account_id bigint not null references accounts (id),
    at         bigint not null, -- when the hour begins
    counts     bytea  not null default {postgres ''}{sqlite x''},
    primary key (account_id, at)
) {compact};

-- Serves trim_traffic.
create unique index account_traffic_at on account_traffic (at, account_id);
