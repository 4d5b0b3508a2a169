//! Adding a post to a stored feed.

use chrono::{DateTime, Utc};
use url::Url;

use super::enclosure::inspect_enclosure;
use super::{AuthoringRefusal, AuthoringService, OwnFile, SavedFeed, SubmittedFeed};
use feedgate_core::stored_file::WriteCondition;
use feedgate_protocol::rss::{self, ChannelInfo, FeedEdit, Post};

/// The maximum number of attempts to add a post to a feed that another writer changes at the same
/// time.
const ATTEMPTS: usize = 5;

/// A post as written by an author.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Draft {
    /// The content, as plain text.
    pub text: String,
    /// The title.
    pub title: Option<String>,
    /// The page that the post links to.
    pub link: Option<Url>,
    /// The categories.
    pub categories: Vec<String>,
    /// The address of an attached media object.
    pub enclosure: Option<Url>,
    /// The guid or link of the parent item.
    pub parent: Option<String>,
}

/// A saved post.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Posted {
    /// The guid of the new item.
    pub id: String,
    /// The number of characters.
    pub chars: usize,
    /// The feed with the new item.
    pub saved: SavedFeed,
}

impl AuthoringService {
    /// Adds a post to a stored feed, which is created if it does not exist.
    pub async fn post(
        &self,
        file: OwnFile<'_>,
        draft: &Draft,
        now: DateTime<Utc>,
    ) -> Result<Posted, AuthoringRefusal> {
        let enclosure = match &draft.enclosure {
            Some(url) => Some(inspect_enclosure(&self.fetch, url).await),
            None => None,
        };
        let post = Post {
            id: new_id().map_err(AuthoringRefusal::Random)?,
            title: draft.title.clone(),
            text: draft.text.clone(),
            link: draft.link.as_ref().map(Url::to_string),
            categories: draft.categories.clone(),
            enclosure,
            at: now,
        };
        let change = FeedEdit { post: &post, parent: draft.parent.as_deref(), keep: None };
        let (login, name) = (file.author.login(), file.name);
        let about = ChannelInfo {
            url: Some(self.url(login, name)),
            cloud: Some(self.settings.public_url.clone()),
            title: login.as_str().to_owned(),
            description: format!("Posts by {}", login.as_str()),
        };
        for _ in 0..ATTEMPTS {
            let held = self.file(login, name).await?;
            let (text, condition) = match &held {
                Some(stored) => {
                    let checked = rss::check(&stored.content.body)?;
                    // The text was decoded, so its declaration must name UTF-8.
                    let text = rss::as_utf8(&checked.text).into_owned();
                    (Some(text), WriteCondition::Tagged(vec![stored.tag.clone()]))
                }
                None => (None, WriteCondition::Absent),
            };
            let feed = rss::add(text.as_deref(), &change, &about)?;
            match self.save(file, SubmittedFeed::Text(&feed), &condition, now).await {
                Err(AuthoringRefusal::Unmet) => {} // another writer saved in between
                done => {
                    let saved = done?;
                    return Ok(Posted { id: post.id.clone(), chars: post.chars(), saved });
                }
            }
        }
        Err(AuthoringRefusal::Unmet)
    }
}

/// Generates the guid of a new item: a random UUID (RFC 9562 `#uuidv4`).
pub fn new_id() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex = hex::encode(bytes);
    let groups = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
    Ok(format!("urn:uuid:{}", groups.join("-")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_uuids_and_no_two_are_the_same() {
        let (one, two) = (new_id().unwrap(), new_id().unwrap());
        assert_ne!(one, two);
        assert_eq!((one.len(), &one[..9], &one[23..24]), (45, "urn:uuid:", "4"));
    }
}
