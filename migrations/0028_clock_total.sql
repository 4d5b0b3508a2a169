-- By how much the clock was set in all. A node that has missed some of it moves its own clock by the difference.
alter table clocks add column moved_in_all bigint not null default 0;
