-- Tokens that are created with other tokens, and the right to do so.

-- The token with which this one was created; null: none, as for those of the command line. The parent
-- may be deleted: then this one is revoked or has ended too.
alter table tokens add column parent_id bigint;
-- Whether the token has the scope `tokens`, which is not among the words of scopes, because versions
-- that do not know it reject the word. Null: such a version created the token.
alter table tokens add column manages_tokens bigint;

-- Serves the revocation of a token with those that were created with it.
create index tokens_parent on tokens (parent_id) where parent_id is not null;
