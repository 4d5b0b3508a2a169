-- Where subscriptions began: streams begin there, whatever the callback has acknowledged since.

-- The seq of the last record from before the subscription, or of the last one that a subscription whose
-- lease had ended acknowledged; null: the subscription is older than this column.
alter table subscriptions add column begun_after bigint;
