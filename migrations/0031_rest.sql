-- Serves the REST API at /v1/.

-- Serves resources_of_account, and list_range for one resource.
create index subscriptions_account_feed on subscriptions (account_id, resource_id, id)
    where account_id <> 0;

-- One row is one request to create or do something, with a key by which its client repeats it.
create table idempotency_keys (
    account_id   bigint not null,
    key_hash     bytea  not null,            -- SHA-256 of the key
    request_hash bytea  not null,            -- SHA-256 of the method, the path and the body
    created_at   bigint not null,            -- when the request was begun, or its claim renewed
    status       bigint not null default 0,  -- of the answer; 0: there is none yet
    location     text   not null default '', -- the header Location of the answer
    body         text   not null default '', -- of the answer, in JSON
    primary key (account_id, key_hash)
);

-- Serves begin_idempotent, which deletes the oldest keys of an account that has too many.
create index idempotency_keys_account on idempotency_keys (account_id, created_at);
-- Serves prune.
create index idempotency_keys_created_at on idempotency_keys (created_at);
