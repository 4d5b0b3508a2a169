-- Finds the subscriptions under an address that is not the topic of their resource: that of a page whose
-- feed is subscribed to, or of an archive.

-- Serves subscribed_under.
create index subscriptions_alias on subscriptions (alias, account_id, callback) where alias <> '';
