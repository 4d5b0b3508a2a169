-- The event log: recent events, for people who investigate why a subscriber was notified, or was
-- not.

-- One row is one event, or several of one kind that were counted together.
create table events (
    -- 1, 2, 3 ... in the order in which they become visible.
    id             bigint not null,
    at             bigint not null,
    kind           text   not null,          -- event::EventKind
    outcome        text   not null,          -- event::EventOutcome
    code           text   not null,          -- the reason as a stable code; empty: none
    via            text   not null,          -- protocol or endpoint; empty: none
    feed           text   not null,          -- redacted: anybody may read it; empty: none
    callback       text   not null,          -- in full: only its owner may read it; empty: none
    redacted_callback text not null,         -- anybody may read it
    account_id     bigint not null,          -- 0: no account
    count          bigint not null,          -- how many events this row stands for
    took_ms        bigint,                   -- null: not measured
    detail         text   not null,          -- a sentence
    private_detail text   not null,          -- the part of the detail that only the owner may read
    primary key (id)
);

-- Serves trim_events, which keeps a number of events of each kind.
create index events_kind on events (kind, id);
