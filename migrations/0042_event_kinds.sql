-- Events of a kind are found by their owners (`events_of_accounts`, `events_of_others`) since 0025; no statement
-- uses this index any more, and each event was written to it.
drop index events_kind;
