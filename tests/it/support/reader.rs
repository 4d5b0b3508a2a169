//! A reader of archives who does what Simplefeed tells it to, and no more: it remembers
//! the last entry it has processed, follows `prev-archive` until it finds it, and then
//! works its way back to the front (seed 004, "Consuming feeds").

use http::StatusCode;

use super::feeds::{entry_ids, link};
use super::gateway::{LOGIN, TOKEN};
use super::server::client;
use super::validator::assert_sound;

/// A reader of one archive.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    /// The ids of the entries processed so far, in the order in which they came.
    pub(crate) processed: Vec<String>,
}

impl Reader {
    /// Processes what is new. Fails if the archive cannot be read, and has then
    /// processed nothing.
    pub(crate) async fn catch_up(&mut self, recent: &str) -> Result<(), String> {
        let last = self.processed.last();
        let mut newer = Vec::new();
        let mut next = Some(recent.to_owned());
        while let Some(address) = next {
            let document = get(&address).await?;
            let mut known = false;
            for id in entry_ids(&document) {
                known = Some(&id) == last;
                if known {
                    break;
                }
                newer.push(id);
            }
            next = if known { None } else { link(&document, "prev-archive") };
        }
        self.processed.extend(newer.into_iter().rev());
        Ok(())
    }
}

/// A document of an archive, which is sound. The reader has an account: most feeds of the tests are on
/// this machine, and belong to the accounts that subscribe to them.
async fn get(address: &str) -> Result<String, String> {
    let request = client().get(address).basic_auth(LOGIN, Some(TOKEN));
    let answer = request.send().await.map_err(|err| err.to_string())?;
    if answer.status() != StatusCode::OK {
        return Err(format!("{address}: {}", answer.status()));
    }
    let url = answer.url().to_string();
    let text = answer.text().await.map_err(|err| err.to_string())?;
    assert_sound(&url, &text);
    Ok(text)
}
