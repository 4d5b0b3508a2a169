-- What happened lately, for people who want to know why they were told, or why not.

-- One row is one event, or several of one kind that were counted together.
create table events (
    id         bigint not null,             -- 1, 2, 3 ... in the order in which they can be seen
    at         bigint not null,             -- when it happened
    kind       text   not null,             -- a word of event::Kind
    outcome    text   not null,             -- a word of event::Outcome
    code       text   not null,             -- why, as a stable word; empty: there is nothing to say
    via        text   not null,             -- protocol or door; empty: none
    feed       text   not null,             -- as it may be shown to anybody; empty: none
    callback   text   not null,             -- whole: for its owner; empty: none
    shown      text   not null,             -- the callback as it may be shown to anybody
    account_id bigint not null,             -- 0: nobody's
    many       bigint not null,             -- how many events this row stands for
    took_ms    bigint,                      -- null: it took no time worth telling
    detail     text   not null,             -- in words
    aside      text   not null,             -- what not everybody may read of an answer
    primary key (id)
);

-- Serves trim_events, which keeps so many of each kind.
create index events_kind on events (kind, id);
