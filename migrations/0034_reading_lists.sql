-- Reading lists: OPML documents whose feeds an account subscribes to.

-- The URL of the reading list that the subscription follows, or that it was made for; empty: none.
alter table subscriptions add column reading_list text not null default '';
-- As in subscriptions; null: that of the subscription stays.
alter table intents add column reading_list text;

-- Serves subscribed_by_list.
create index subscriptions_reading_list on subscriptions (reading_list, account_id, callback)
    where reading_list <> '';

-- One row is one reading list that an account follows with a callback. It outlives the subscription to the
-- document, until the subscriptions that were made for it have ended.
create table reading_lists (
    resource_id     bigint not null,         -- the document
    subscription_id bigint not null,         -- the subscription to it
    account_id      bigint not null,
    topic           text   not null,         -- of the document
    callback        text   not null,
    due_at          bigint not null,         -- when the list is read again, or when a claim ends
    -- The token that distinguishes this claim from all others; 0: the list is not claimed.
    claim_token     bigint not null default 0,
    report          text   not null,         -- reading_list::ReadingListReport, in JSON
    primary key (resource_id, subscription_id)
);

-- Serves claim_reading_lists.
create index reading_lists_due_at on reading_lists (due_at);
