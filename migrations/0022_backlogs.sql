-- What subscriptions are owed follows from their cursors. Rows of `deliveries`, one for each subscription that
-- was owed something, are replaced by rows that say where to look.

-- When a delivery that failed is repeated; null: nothing failed; more than 4 * 10^18: with the next change.
alter table subscriptions add column retry_at bigint;

-- One row is the subscriptions to a resource of one account (or of none) at one host of callbacks, some of
-- which may be owed something. It is inserted when records are appended, and deleted when all of them are up
-- to date.
create table backlogs (
    resource_id   bigint not null,
    number        bigint not null,           -- the least `id` of the subscriptions that it was made for
    account_id    bigint not null,           -- of the subscriptions
    host          text   not null,           -- of the callbacks, with the port
    -- How many subscriptions were owed something when that was last counted.
    size          bigint not null,
    -- When the subscriptions may be claimed: at once, at a retry, or at the end of a claim.
    due_at        bigint not null,
    -- Until when a node delivers; null: no node does.
    claimed_until bigint,
    -- The token that distinguishes this claim from all others; 0: the row has no claim.
    claim_token   bigint not null default 0,
    -- Subscriptions are claimed in the order of their numbers. Those up to this one have been, in the pass that
    -- is under way; 0: a pass begins; the greatest number: only retries are due.
    after_id      bigint not null default 0,
    -- 1: some became due since the pass began, so another pass follows.
    is_marked     bigint not null default 0,
    primary key (resource_id, number),
    unique (resource_id, account_id, host)
) {compact};

-- Serves claim_subscriptions: longest due first.
create index backlogs_due_at on backlogs (due_at, number);
-- Serves claim_subscriptions_of_host.
create index backlogs_host on backlogs (host, due_at, number);
-- Serves claim_subscriptions when more is due than is claimed together: accounts take turns.
create index backlogs_account on backlogs (account_id, due_at, number) where account_id <> 0;

-- Serves claims, which read the subscriptions of a backlog in the order of their numbers.
create index subscriptions_backlog on subscriptions (resource_id, host, account_id, id);
-- Serves claims of those that are due at a retry, and the end of a pass, which looks for the next one.
create index subscriptions_retry_at on subscriptions (resource_id, host, account_id, retry_at)
    where retry_at is not null;

-- A replay that waited for the end of a delivery has happened.
update subscriptions
   set cursor = (select d.replay_from from deliveries d
                  where d.resource_id = subscriptions.resource_id and d.subscription_id = subscriptions.id)
 where exists (select 1 from deliveries d
                where d.resource_id = subscriptions.resource_id and d.subscription_id = subscriptions.id
                  and d.replay_from is not null);
-- A subscription whose delivery failed waits for a retry, or for the next change.
update subscriptions
   set retry_at = coalesce((select d.due_at from deliveries d
                             where d.resource_id = subscriptions.resource_id
                               and d.subscription_id = subscriptions.id),
                           4611686018427387904)
 where failures > 0
   and not exists (select 1 from deliveries d
                    where d.resource_id = subscriptions.resource_id
                      and d.first_member <= subscriptions.id and d.last_member >= subscriptions.id
                      and d.members like '%,' || subscriptions.id || ',%');

insert into backlogs (resource_id, number, account_id, host, size, due_at)
select resource_id, min(case when subscription_id < 0 then first_member else subscription_id end), account_id, host,
       sum(size), min(due_at)
  from deliveries
 where due_at is not null
 group by resource_id, account_id, host;

drop table deliveries;
