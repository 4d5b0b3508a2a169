-- The credentials that subscribers have sent to their callbacks.

-- callback_headers::CallbackHeaders, sealed; null: none are sent.
alter table subscriptions add column header_secret text;
-- As in subscriptions; null: none were given, so that those of the subscription stay.
alter table intents add column header_secret text;
