-- For whom backfills run, so that strangers' do not keep those of accounts waiting.

-- 1: an account requested it; 0: only subscribers without an account did.
alter table backfills add column for_accounts bigint not null default 0;
-- 1: the next step waits for the budget of its subscribers, or for disk space.
alter table backfills add column is_postponed bigint not null default 0;
-- Serves claim_backfills. backfills_due_at serves earlier versions only.
create index backfills_due_for on backfills (for_accounts, due_at) where due_at is not null;
