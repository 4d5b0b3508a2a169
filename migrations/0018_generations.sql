-- What tells claims of deliveries from before a change of their subscription from those after it, and
-- passes over all subscriptions of a resource that end before the next one begins.

-- Raised by a pause, the end of one, a renewal, a replay and a retry by hand.
alter table subscriptions add column generation bigint not null default 0;

-- 1: an append during the pass found nobody; another pass follows.
alter table fan_outs add column is_repeated bigint not null default 0;
