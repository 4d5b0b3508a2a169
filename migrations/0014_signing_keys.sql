-- The keys that requests to publishers are signed with.

-- One row is one key. The key that is used is the newest one whose time has come; the next one is
-- published before that, the one before it for some time after.
create table signing_keys (
    generation {alias},                      -- counts the keys
    used_from  bigint not null,              -- when requests begin to be signed with it
    -- What the private key is made from: 32 bytes in hexadecimal, encrypted with the key of the
    -- secrets.
    seed       text   not null
);
