-- What servers requested of all nodes.

-- Until when the resource is not fetched, whatever reports a change of it; null: its server requested no
-- pause.
alter table resources add column left_alone_until bigint;
-- When the next request that a redirect leads to the group may begin, so that such requests leave most of
-- the times of the group to its own resources.
alter table hosts add column redirect_free_at bigint not null default 0;
