-- Accounts, with their credentials and stored files.

-- One row is one account.
create table accounts (
    id            {number},
    login         text   not null unique,
    -- The hash by argon2id in the PHC string format; null: tokens only.
    password_hash text,
    created_at    bigint not null,
    -- When the account was removed; null: it exists. The row stays, so that nobody else gets the
    -- login, which is part of the addresses of stored feeds.
    removed_at    bigint,
    -- Since when the account is deactivated; null: it is active. The paused_at of each subscription
    -- that was paused for this is the same time.
    deactivated_at bigint
);

-- Serves the deletion of subscriptions that were verified while their account was removed.
create index accounts_removed_at on accounts (removed_at) where removed_at is not null;

-- Serves the pausing of subscriptions that were verified while their account was deactivated.
create index accounts_deactivated_at on accounts (deactivated_at) where deactivated_at is not null;

-- One row is one API token of an account. The token itself is not stored.
create table tokens (
    id         {number},
    account_id bigint not null references accounts (id),
    name       text   not null,              -- chosen by its owner
    scopes     text   not null,              -- words of account::Scope, separated by spaces
    hash       bytea  not null unique,       -- SHA-256; serves authenticate
    created_at bigint not null,
    revoked_at bigint,                       -- null: it was not revoked
    expires_at bigint,                       -- null: it is valid until it is revoked
    used_at    bigint                        -- to the hour; null: it was never used
);

-- Serves list_accounts and close_account.
create index tokens_account on tokens (account_id);
-- Serves prune.
create index tokens_revoked_at on tokens (revoked_at) where revoked_at is not null;

-- One row is one browser that is signed in to the console. The cookie itself is not stored.
create table sessions (
    hash       bytea  not null primary key,  -- SHA-256 of the cookie
    token_id   bigint not null references tokens (id) on delete cascade,
    created_at bigint not null,
    used_at    bigint not null               -- to the hour
);

-- Serves prune.
create index sessions_used_at on sessions (used_at);
-- Serves prune, which deletes tokens with their sessions.
create index sessions_token on sessions (token_id);

-- One row is one feed or other file that an account stores here, served at
-- /storage/LOGIN/NAME.
create table stored_files (
    account_id bigint not null references accounts (id),
    name       text   not null,
    media_type text   not null,
    etag       text   not null,              -- without quotes
    changed_at bigint not null,
    bytes      bigint not null,              -- length of body; serves quotas
    body       bytea  not null,
    primary key (account_id, name)
);
