-- Tokens that have expired are deleted, as those that were revoked.

-- Serves prune.
create index tokens_expires_at on tokens (expires_at) where expires_at is not null;
