-- Who requested the subscriptions that no account owns, so that what they cost is charged to them.

-- The network of the client that requested an open subscription first, as a negative number
-- (registrant::RegistrantNetwork); 0: the subscription is that of an account, or older than this column.
alter table subscriptions add column registrant_network bigint not null default 0;
-- As in subscriptions.
alter table intents add column registrant_network bigint not null default 0;

-- The network of the client that asked for the resource first: it is fetched before its first subscription is
-- stored; 0: an account did, or nobody knows.
alter table resources add column registrant_network bigint not null default 0;
-- When the appends to a resource that no account watches are paid for by the budget of the resource;
-- appends_paid_at is later if the networks of its subscribers have used up theirs.
alter table resources add column anonymous_paid_at bigint not null default 0;

-- In account_appends, a negative account_id is a network. Serves the deletion of its old rows.
create index account_appends_networks on account_appends (day) where account_id < 0;
