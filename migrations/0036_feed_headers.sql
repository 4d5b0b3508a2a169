-- The credentials that an account has sent to the server of a feed.

-- One row is the headers for a resource that only the subscriptions of one account watch.
create table feed_headers (
    -- Nodes of the version before delete resources without knowing this table.
    resource_id   bigint not null references resources (id) on delete cascade,
    -- callback_headers::CallbackHeaders, sealed.
    header_secret text   not null,
    primary key (resource_id)
);
