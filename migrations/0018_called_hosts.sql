-- Whom intents and upstreams make us ask, so that no host is asked much at once.

-- The name of the callback's host; empty: whoever is subscribed already, and is not counted.
alter table intents add column host text not null default '';
-- Serves claim_intents when one host fills the front of the queue.
create index intents_host on intents (host, due_at);

-- Of the hub or cloud, with the port; empty: not claimed since this column was made.
alter table upstreams add column host text not null default '';
-- Serves claim_upstreams when one host fills the front of the queue.
create index upstreams_host on upstreams (host, due_at);
