-- Delivery: subscriptions with their cursors, the last attempts to deliver to them, subscription
-- requests that wait to be verified, and pings that are forwarded.

-- One row is one subscription: a callback, and how far it has been notified. For subscribers who
-- receive the topic's own document ('raw'), cursors count versions of the body; for all others they
-- are seqs of the log.
create table subscriptions (
    id                  {serial},
    resource_id         bigint not null references resources (id),
    account_id          bigint not null,     -- 0: an open subscription, which no account owns
    callback            text   not null,
    host                text   not null,     -- of the callback, with the port
    protocol            text   not null,     -- subscription::Protocol
    procedure           text   not null,     -- empty: the protocol has none
    format              text   not null,     -- subscription::Format
    -- The updates of entries that are sent: subscription::Updates.
    updates             text   not null default 'fresh',
    -- The changes of status that are sent: subscription::Statuses.
    statuses            text   not null default 'never',
    is_sanitized        bigint not null default 0, -- 1: the texts of entries are sanitized
    -- The address of an archive of this gateway under which the resource was subscribed to; empty:
    -- its topic.
    alias               text   not null default '',
    secret              text,                -- signs deliveries; null: they are not signed
    -- The hash function of X-Hub-Signature, a word of SignatureMethod; null: the gateway's.
    signature_method    text,
    -- The secret before the current one; null: there was none, or it is no longer used.
    previous_secret     text,
    previous_secret_until bigint,            -- until when it signs deliveries too
    lease_until         bigint not null,     -- nothing is sent after this
    created_at          bigint not null,
    cursor              bigint not null,     -- the last number that the callback acknowledged
    -- The last version of the status that the callback acknowledged.
    acknowledged_status bigint not null default 0,
    -- The cursor before it was set back, so that repeated records are not measured as late; 0: it
    -- never was set back.
    replayed_upto       bigint not null default 0,
    -- How many replays have been requested; part of the ids of their deliveries.
    replays             bigint not null default 0,
    -- When the next digest is due; null: none are sent.
    digest_at           bigint,
    -- The value of `replays` after the replay that is the newest digest; 0: there was none.
    digest_replays      bigint not null default 0,
    -- How many notifications the callback has acknowledged.
    acknowledged        bigint not null default 0,
    -- Since when nothing is sent; null: the subscription is not paused.
    paused_at           bigint,
    -- 1: it was paused by this program, because its callback had failed for a month.
    is_suspended        bigint not null default 0,
    failures            bigint not null default 0, -- consecutive failed attempts
    failing_since       bigint,              -- when the first of them was
    -- Consecutive changes that could not be delivered, however often each was tried.
    failed_changes      bigint not null default 0,
    failed_upto         bigint not null default 0, -- the last number of the newest of them
    attempted_at        bigint,              -- when the last attempt ended; null: there was none
    attempt_status      bigint not null default 0, -- its status code; 0: there was no response
    -- The beginning of its response, or why there was none; empty after a success.
    attempt_excerpt     text   not null default '',
    {key} (resource_id, id),
    -- The callback is second: a callback is looked up in one resource without its account, too.
    unique (resource_id, callback, account_id, protocol, alias)
) {roomy};

-- Serves list.
create index subscriptions_account on subscriptions (account_id, id);
-- Serves appends, which look up the accounts with subscriptions to a resource.
create index subscriptions_owned on subscriptions (resource_id, account_id) where account_id <> 0;
-- Serves changes of a status, which few subscriptions are notified of.
create index subscriptions_statuses on subscriptions (resource_id) where statuses <> 'never';
-- Serves drop_failing.
create index subscriptions_failed_changes on subscriptions (failed_changes, id)
    where failed_changes > 0 and protocol <> 'websub';
-- Serves start_digests.
create index subscriptions_digest_at on subscriptions (digest_at, id) where digest_at is not null;
-- Serves drop_expired.
create index subscriptions_lease_until on subscriptions (lease_until);

-- One row is a subscription that is owed something, or to which a node delivers: it is inserted when
-- records are appended that it receives, and deleted when it is up to date. The columns that change
-- with each delivery and are indexed are here and not in `subscriptions`, whose many indices
-- PostgreSQL would extend with each change of any of them.
--
-- Deliveries of one resource to callbacks of one account (or of none) at one host, with the same due
-- time, are members of a batch: one row for all of them, with their due time and their claim.
create table deliveries (
    resource_id     bigint not null,
    -- Less than 0: the row is a batch; its number is the negated `id` of the first or the last
    -- member it was made with.
    subscription_id bigint not null,
    account_id      bigint not null,         -- of the subscription, or of the members
    host            text   not null,         -- of the subscription, or of the members
    -- The number of deliveries in the row: the members that are left in a batch, otherwise 1.
    size            bigint not null default 1,
    -- When the subscription may be claimed: at once, at a retry, or at the end of a claim; null: it
    -- was paused while a node delivered.
    due_at          bigint,
    -- Until when a node delivers; null: no node does.
    claimed_until   bigint,
    -- The token that distinguishes this claim from all others; 0: the row has no claim.
    claim_token     bigint not null default 0,
    -- Where to set the cursor once the delivery in progress ends; null: the cursor is not set back.
    replay_from     bigint,
    -- The ids of the first and of the last member when the batch was made, at most 8,192 apart; null:
    -- the row is no batch.
    first_member    bigint,
    last_member     bigint,
    -- The ids of the members, as a text such as ',7,8,12,'; null: the row is no batch.
    members         text,
    primary key (resource_id, subscription_id)
) {compact};

-- Serves claim_subscriptions: due subscriptions, longest due first.
create index deliveries_due_at on deliveries (due_at, subscription_id) where due_at is not null;
-- Serves claim_subscriptions when one host has more due than it may be sent at once.
create index deliveries_host on deliveries (host, due_at, subscription_id) where due_at is not null;
-- Serves claim_subscriptions when more is due than is claimed together: accounts take turns.
create index deliveries_account on deliveries (account_id, due_at, subscription_id)
    where due_at is not null and account_id <> 0;
-- Serves all that look up the batch of a subscription.
create index deliveries_members on deliveries (resource_id, last_member, first_member)
    where last_member is not null;

-- One row is one attempt to deliver to a callback, for people who investigate why a notification
-- did not arrive. Nothing else depends on it: a crash may lose attempts, and old ones are deleted.
create table delivery_attempts (
    id               {serial},
    resource_id      bigint not null,
    subscription_id  bigint not null,
    at               bigint not null,        -- when it began
    took             bigint not null,
    verdict          text   not null,        -- attempt::AttemptVerdict
    code             text   not null,        -- the result as a stable code
    error            text   not null,        -- why there was no response; empty: there was one
    next_at          bigint,                 -- when the delivery is retried; null: no time is set
    content          text   not null,        -- attempt::PayloadContent
    -- The numbers that the payload covers: of records, or of body versions as the cursor.
    first_number     bigint not null,
    last_number      bigint not null,
    entries          bigint not null,        -- how many entries are in the payload
    body_bytes       bigint not null,        -- the length of the body that was sent
    content_type     text   not null,
    status           bigint,                 -- the status code; null: there was no response
    -- 0: the response came from an address that is not public, and only the operator may read it.
    is_public        bigint not null,
    request_headers  text   not null,        -- JSON: attempt::HeaderLine, without secrets
    response_headers text   not null,        -- JSON: attempt::HeaderLine, without secrets
    response_body    bytea  not null,        -- the beginning of the body, without secrets
    {key} (resource_id, id),
    foreign key (resource_id, subscription_id)
        references subscriptions (resource_id, id) on delete cascade
);

-- Serves attempts, and append_attempts, which deletes the oldest of a subscription; and the deletion
-- of subscriptions.
create index delivery_attempts_subscription on delivery_attempts (resource_id, subscription_id, id);
-- Serves trim_attempts.
create index delivery_attempts_at on delivery_attempts (at);

-- One row is the cursor of a WebSub subscription whose lease has ended, for a subscriber that renews
-- it late.
create table kept_cursors (
    resource_id   bigint not null references resources (id),
    hash          bytea  not null,           -- SHA-256 of account, callback, protocol and alias
    counts_bodies bigint not null,           -- 1: the cursor is a version of the body ('raw')
    cursor        bigint not null,
    until         bigint not null,           -- when it is deleted
    primary key (resource_id, hash)
);

-- Serves the deletion of those that are no longer kept.
create index kept_cursors_until on kept_cursors (until);

-- One row is a part of the number of subscriptions that count towards a quota: of an account, or of
-- open subscriptions with callbacks at one host. A count has several rows, which are added up, so
-- that subscriptions to different resources seldom wait for the same row.
create table subscription_counts (
    account_id    bigint not null,           -- 0: open subscriptions
    host          text   not null,           -- of the callbacks, without the port; empty: an account
    stripe        bigint not null,           -- chosen by the resource
    subscriptions bigint not null,
    primary key (account_id, host, stripe)
);

-- One row is a resource with subscriptions that its last appends have yet to mark due.
create table fan_outs (
    resource_id bigint not null references resources (id),
    next_id     bigint not null,             -- the last subscription that was looked at
    advanced_at bigint not null,             -- when that was; the oldest is next
    primary key (resource_id)
);

-- Serves pending_fan_outs.
create index fan_outs_advanced_at on fan_outs (advanced_at);

-- One row is one request to subscribe or unsubscribe that has yet to be verified.
create table intents (
    id           {number},
    -- SHA-256 of account, topic, callback, protocol and alias: a newer request for the same replaces
    -- an older one.
    hash         bytea  not null unique,
    mode         text   not null,            -- intent::IntentMode
    account_id   bigint not null,            -- 0: no account
    topic        text   not null,
    -- The address of an archive of this gateway under which the topic was requested; empty: the
    -- topic.
    alias        text   not null default '',
    callback     text   not null,
    -- The host of the callback, without the port; empty: the callback is subscribed already, and
    -- not limited by host.
    host         text   not null default '',
    protocol     text   not null,
    procedure    text   not null,
    format       text   not null,
    updates      text   not null default 'fresh',
    statuses     text   not null default 'never',
    is_sanitized bigint not null default 0,  -- as in subscriptions
    digest       bigint not null default 0,  -- 1: send a digest every day
    secret       text,
    signature_method text,                   -- as in subscriptions
    secret_overlap_s bigint,                 -- signing::SecretOverlap; null: none was requested
    lease_s      bigint not null,            -- seconds that were requested
    verify_token text,                       -- sent back to the callback; null: none was given
    backfill     bigint not null default 0,  -- 1: start a backfill once it is verified
    -- The form that a publisher who validates subscriptions is sent, without secrets.
    parameters   text   not null default '',
    is_verified  bigint not null default 0,  -- 1: subscribed; only the publisher has to decide
    attempts     bigint not null default 0,
    due_at       bigint not null,            -- when to verify or retry, or when a claim ends
    -- The token that distinguishes this claim from all others; 0: the intent is not claimed.
    claim_token  bigint not null default 0
);

-- Serves claim_intents.
create index intents_due_at on intents (due_at, id);

-- One row is one change that one ping target has yet to be notified of.
create table forwarded_pings (
    id       {number},
    -- SHA-256 of target and feed_url: newer changes join a waiting ping.
    hash     bytea  not null unique,
    target   text   not null,                -- the target's name in the configuration
    name     text   not null,                -- title of the web site
    url      text   not null,                -- of the web site
    feed_url text   not null,
    -- How many changes the ping covers; grows while the ping is sent.
    version  bigint not null default 1,
    attempts bigint not null default 0,
    due_at   bigint not null,                -- when to send or retry, or when a claim ends
    -- The token that distinguishes this claim from all others; 0: the ping is not claimed.
    claim_token bigint not null default 0
);

-- Serves claim_forwarded_pings.
create index forwarded_pings_due_at on forwarded_pings (target, due_at);
