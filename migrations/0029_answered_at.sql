-- When the resource last answered well; null: never, or not since this column exists. It moves with the clock.
alter table resources add column answered_at bigint;
