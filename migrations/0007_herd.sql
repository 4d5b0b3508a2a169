-- What is needed to bring the queue into order after a standstill.

-- Seconds between two polls, as the last one decided; 0 before the first.
alter table resources add column period bigint not null default 0;
