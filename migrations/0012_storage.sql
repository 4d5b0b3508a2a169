-- Feeds that are stored for their authors (rssCloud.saveRss), and the authors' passwords.

-- A hash by argon2id in the PHC string format; null: only tokens open the account.
alter table accounts add column password text;

-- One row is one file, served at /storage/{login}/{name}.
create table files (
    account_id bigint not null references accounts (id),
    name       text   not null,
    media_type text   not null,
    body       bytea  not null,             -- as it was sent
    bytes      bigint not null,             -- how many those are; serves quotas
    tag        text   not null,             -- its entity tag, without quotes
    changed_at bigint not null,
    primary key (account_id, name)
);
