-- Alerts: what the owner of an account is told about its callbacks, its feeds and its quota. An alert is no
-- row: it is a difference between what an account was told and what is so now (alerts.rs of the store).

-- What its owner was told last: 1 that the callback fails, 2 that the subscription is suspended, 0 neither, or
-- that it has recovered.
alter table subscriptions add column alerted bigint not null default 0;
-- Since when the resource is gone; null: it is not.
alter table resources add column gone_at bigint;
-- When fetch_url was last replaced after a permanent redirect; null: never, or that was taken back.
alter table resources add column moved_at bigint;

-- Serves owed_alerts: the subscriptions that are in another state than their owner was told.
create index subscriptions_alerts on subscriptions (account_id, resource_id, id)
    where account_id <> 0
      and alerted <> case when is_suspended = 1 then 2 when failures >= 5 then 1
                          when failures = 0 and attempt_status >= 200 and attempt_status < 300 then 0
                          else alerted end;
-- Serves owed_alerts.
create index resources_gone_at on resources (gone_at) where gone_at is not null;
-- Serves owed_alerts.
create index resources_moved_at on resources (moved_at) where moved_at is not null;

-- One row is the alert address of an account.
create table alert_addresses (
    account_id      bigint not null references accounts (id),
    url             text   not null,
    secret          text,                    -- signs alerts; null: they are not signed
    kinds           text   not null,         -- words of alert::AlertKind, separated by spaces
    created_at      bigint not null,
    feeds_told_until bigint not null,        -- feeds that were gone or moved later have not been told
    is_quota_told   bigint not null default 0, -- 1: the owner was told that the quota is nearly used up
    failures        bigint not null default 0, -- consecutive failed attempts
    attempted_at    bigint,                  -- when the last attempt ended; null: there was none
    attempt_code    text   not null default '', -- the result of the last attempt as a stable code
    -- When to look for alerts, when to retry, or when a claim ends.
    due_at          bigint not null,
    -- The token that distinguishes this claim from all others; 0: the row is not claimed.
    claim_token     bigint not null default 0,
    primary key (account_id)
);

-- Serves claim_alert_addresses.
create index alert_addresses_due_at on alert_addresses (due_at);
