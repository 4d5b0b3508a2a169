-- What subscriptions are told of their resource's status when there is nothing else to
-- tell (rule P33).

-- How often the status changed into or out of error, to gone, or to another address.
alter table resources add column status_version bigint not null default 0;
-- How often that was news to those who want no false alarms.
alter table resources add column status_news bigint not null default 0;

-- A word of subscription::Statuses.
alter table subscriptions add column statuses text not null default 'never';
-- Which of the two versions above the callback has acknowledged, by that word.
alter table subscriptions add column status_told bigint not null default 0;
alter table intents add column statuses text not null default 'never';

update subscriptions set statuses = 'transitions'
 where protocol = 'websub' and account_id <> 0 and format <> 'raw';
update intents set statuses = 'transitions'
 where protocol = 'websub' and account_id <> 0 and format <> 'raw';
