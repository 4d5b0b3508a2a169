-- Whether it is known what existed before the first of the present subscriptions: the resource answered well
-- since, or shortly before. No time is compared after the subscription, so that a clock that is set loses nothing.
alter table resources add column is_baseline_known bigint not null default 1;
