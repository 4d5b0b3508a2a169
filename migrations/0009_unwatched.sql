-- Since when nobody watches a resource, so that it can be forgotten.

-- null: it is watched, or upkeep has not noticed yet.
alter table resources add column unwatched_since bigint;

-- Serves note_unwatched and forget_unwatched.
create index resources_unwatched on resources (unwatched_since) where subscribers = 0;
