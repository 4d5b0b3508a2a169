-- The index of alerts no longer contains `attempt_status`, which the first delivery to a subscription changes: an
-- update that changes no indexed column stays on its page on PostgreSQL, and is in no index again.

drop index subscriptions_alerts;
-- Serves owed_alerts: the subscriptions that may be in another state than their owner was told.
create index subscriptions_alerts on subscriptions (account_id, resource_id, id)
    where account_id <> 0
      and alerted <> case when is_suspended = 1 then 2 when failures >= 5 then 1 when failures = 0 then 0
                          else alerted end;
