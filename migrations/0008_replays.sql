-- What a replay brings again, so that its delay is not taken for ours.

-- Up to where the callback had been told before a replay set its cursor back; 0: never.
alter table subscriptions add column told_before bigint not null default 0;
