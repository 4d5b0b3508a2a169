-- What the poll budget is kept by: how much each resource wants to be polled, and the
-- dial that upkeep turns (src/domain/schedule/budget.rs).

-- The period of a resource is unit_ms * k / K_LEAST, and at least this.
alter table resources add column least_s bigint not null default 3600;
-- 0: its period does not depend on k.
alter table resources add column unit_ms bigint not null default 0;

-- Serves planned, once a minute, without reading the resources themselves.
create index resources_demand on resources (least_s, unit_ms) where subscribers > 0;

-- One row is a number that all nodes share.
create table dials (
    name  text   primary key,
    value bigint not null               -- in millionths
);
