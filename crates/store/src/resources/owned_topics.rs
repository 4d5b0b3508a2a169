//! Which of some addresses are those of feeds of an account.

use std::collections::HashSet;

use crate::Store;
use crate::engine::sql::Value;
use crate::engine::tx::Tx;
use crate::resources::find_feeds::owned_ids;
use crate::resources::{row, subscribed_by};
use feedgate_core::account::AccountId;
use feedgate_core::store::StoreError;

impl Store {
    /// Returns those of these addresses, as they are displayed, that are topics to which an account
    /// subscribes. If it has many subscriptions, topics with credentials in them are left out.
    pub async fn owned_topics(
        &self,
        account: AccountId,
        addresses: Vec<String>,
    ) -> Result<HashSet<String>, StoreError> {
        let is_few = self.account_with_few(Some(account)).await?.is_some();
        let found = self.each(|db| {
            let addresses = addresses.clone();
            db.read(move |tx| {
                Box::pin(async move {
                    match is_few {
                        true => topics_of(tx, owned_ids(tx, account).await?).await,
                        false => topics_of(tx, named(tx, account, addresses).await?).await,
                    }
                })
            })
        });
        let mut owned: HashSet<String> = found.await?.into_iter().flatten().collect();
        owned.retain(|topic| addresses.contains(topic));
        Ok(owned)
    }
}

/// Returns the resources with these topics to which an account subscribes.
async fn named(
    tx: &Tx<'_>,
    account: AccountId,
    topics: Vec<String>,
) -> Result<Vec<i64>, StoreError> {
    const NAMED: &str = "select id from resources where topic in ({texts $1})";
    let rows = tx.query(NAMED, &[Value::Texts(topics)]).await?;
    let ids = rows.into_iter().map(|mut row| row.int()).collect::<Result<_, _>>()?;
    subscribed_by(tx, account, ids).await
}

/// Returns the topics of resources, as they are displayed.
async fn topics_of(tx: &Tx<'_>, ids: Vec<i64>) -> Result<Vec<String>, StoreError> {
    const TOPICS: &str = "select topic from resources where id in ({ids $1})";
    let rows = tx.query(TOPICS, &[Value::Ints(ids)]).await?;
    let read = |mut row| row::topic(&mut row).map(|topic| topic.redacted().to_owned());
    rows.into_iter().map(read).collect()
}
