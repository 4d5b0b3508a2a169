//! Subscriptions under the address of a page whose feed is subscribed to.
//!
//! The address is the alias of the topic, which is that of the feed. Subscribers know the address only.

use crate::delivery::row::number;
use crate::engine::sql::params;
use crate::resources::row::topic;
use crate::{Db, Store};
use feedgate_core::account::AccountId;
use feedgate_core::store::StoreError;
use feedgate_core::topic::{Callback, Topic};

/// The maximum number of topics that are returned of each cell. A callback has one under an address,
/// unless requests crossed.
const MOST: i64 = 8;

impl Store {
    /// Returns the topics, with `alias` as their alias, to which an account is subscribed under that
    /// address, or subscribers without an account (`None`): with one callback, or with any. They are in
    /// the order of their URLs, and a few at most.
    pub async fn subscribed_under(
        &self,
        account: Option<AccountId>,
        alias: &str,
        callback: Option<&Callback>,
    ) -> Result<Vec<Topic>, StoreError> {
        let callback = callback.map(Callback::as_str);
        let found = self.each(|db| db.subscribed_under(account, alias, callback)).await?;
        let mut found: Vec<Topic> = found.into_iter().flatten().collect();
        found.sort_by(|one, other| one.as_str().cmp(other.as_str()));
        Ok(found)
    }
}

impl Db {
    async fn subscribed_under(
        &self,
        account: Option<AccountId>,
        alias: &str,
        callback: Option<&str>,
    ) -> Result<Vec<Topic>, StoreError> {
        const WITH_ONE: &str = "
            select r.topic
              from subscriptions s join resources r on r.id = s.resource_id
             where s.alias = $1 and s.alias <> '' and s.account_id = $2 and s.callback = $3
             limit $4";
        const WITH_ANY: &str = "
            select r.topic
              from subscriptions s join resources r on r.id = s.resource_id
             where s.alias = $1 and s.alias <> '' and s.account_id = $2
             order by s.callback
             limit $3";
        let account = number(account);
        let rows = match callback {
            Some(callback) => self.rows(WITH_ONE, params![alias, account, callback, MOST]).await?,
            None => self.rows(WITH_ANY, params![alias, account, MOST]).await?,
        };
        let topics = rows.into_iter().map(|mut row| {
            let topic = topic(&mut row)?;
            Ok(topic.with_alias(Some(alias.to_owned())))
        });
        topics.collect()
    }
}
