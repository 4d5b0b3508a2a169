-- An rssCloud subscription is dropped after errors at three changes, however often each was tried.

-- Consecutive changes of which the callback could not be told.
alter table subscriptions add column errors bigint not null default 0;
-- The number up to which the last of them reached; counts only where there are errors.
alter table subscriptions add column errors_upto bigint not null default 0;
