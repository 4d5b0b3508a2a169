//! Which of some addresses are those of feeds that an account, or an administrator, may see.

use std::collections::HashMap;

use crate::Store;
use crate::engine::row::Row;
use crate::engine::sql::Value;
use crate::engine::tx::Tx;
use crate::resources::find_feeds::owned_ids;
use crate::resources::{row, subscribed_by};
use feedgate_core::account::AccountId;
use feedgate_core::resource::ResourceId;
use feedgate_core::store::StoreError;

impl Store {
    /// Returns those of these addresses, as they are displayed, that are topics to which an account
    /// subscribes, or topics at all without an account, with their resources. Topics with credentials in them
    /// are found only for an account that has few subscriptions.
    pub async fn named_feeds(
        &self,
        account: Option<AccountId>,
        addresses: Vec<String>,
    ) -> Result<HashMap<String, ResourceId>, StoreError> {
        let few_of = self.account_with_few(account).await?;
        let found = self.each(|db| {
            let addresses = addresses.clone();
            db.read(move |tx| {
                Box::pin(async move {
                    let ids = match (few_of, account) {
                        (Some(account), _) => owned_ids(tx, account).await?,
                        (None, Some(account)) => {
                            subscribed_by(tx, account, named(tx, addresses).await?).await?
                        }
                        (None, None) => named(tx, addresses).await?,
                    };
                    topics_of(tx, ids).await
                })
            })
        });
        let mut feeds: HashMap<String, ResourceId> = found.await?.into_iter().flatten().collect();
        feeds.retain(|topic, _| addresses.contains(topic));
        Ok(feeds)
    }
}

/// Returns the resources with these topics.
async fn named(tx: &Tx<'_>, topics: Vec<String>) -> Result<Vec<i64>, StoreError> {
    const NAMED: &str = "select id from resources where topic in ({texts $1})";
    let rows = tx.query(NAMED, &[Value::Texts(topics)]).await?;
    rows.into_iter().map(|mut row| row.int()).collect()
}

/// Returns the topics of resources, as they are displayed.
async fn topics_of(tx: &Tx<'_>, ids: Vec<i64>) -> Result<Vec<(String, ResourceId)>, StoreError> {
    const TOPICS: &str = "select id, topic from resources where id in ({ids $1})";
    let rows = tx.query(TOPICS, &[Value::Ints(ids)]).await?;
    let read = |mut row: Row| {
        let id = ResourceId(row.int()?);
        Ok((row::topic(&mut row)?.redacted().to_owned(), id))
    };
    rows.into_iter().map(read).collect()
}
