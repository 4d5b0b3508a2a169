//! A post goes into a feed that is stored here.

use chrono::{DateTime, Utc};
use url::Url;

use super::enclosure::inspect_enclosure;
use super::{Author, AuthoringRefusal, AuthoringService, SavedFeed, SubmittedFeed};
use feedgate_core::stored_file::{PathSegment, WriteCondition};
use feedgate_protocol::rss::{self, ChannelInfo, FeedEdit, Post};

/// How often a post is put into what another writer has changed meanwhile.
const ATTEMPTS: usize = 5;

/// What an author writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Draft {
    /// What is said.
    pub text: String,
    /// A title.
    pub title: Option<String>,
    /// What it is about.
    pub link: Option<Url>,
    /// Its categories.
    pub categories: Vec<String>,
    /// The address of a media object.
    pub enclosure: Option<Url>,
    /// The guid or link of the item that it stands under.
    pub parent: Option<String>,
}

/// A post that was saved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Posted {
    /// What its item is known by.
    pub id: String,
    /// How many characters it has.
    pub chars: usize,
    /// The feed that it is in.
    pub saved: SavedFeed,
}

impl AuthoringService {
    /// Adds a post to a stored feed, which is made if there is none.
    pub async fn post(
        &self,
        (author, name): (&Author, &PathSegment),
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
        let login = author.login();
        let about = ChannelInfo {
            url: Some(self.url(login, name)),
            cloud: Some(self.settings.public_url.clone()),
            title: login.as_str().to_owned(),
            description: format!("Posts by {}", login.as_str()),
        };
        for _ in 0..ATTEMPTS {
            let held = self.file(login, name).await?;
            let (text, condition) = match &held {
                Some(file) => {
                    let checked = rss::check(&file.content.body)?;
                    // Whatever it was in, it is UTF-8 now, and says so.
                    let text = rss::as_utf8(&checked.text).into_owned();
                    (Some(text), WriteCondition::Tagged(vec![file.tag.clone()]))
                }
                None => (None, WriteCondition::Absent),
            };
            let feed = rss::add(text.as_deref(), &change, &about)?;
            match self.save((author, name), SubmittedFeed::Text(&feed), &condition, now).await {
                Err(AuthoringRefusal::Unmet) => {} // somebody else wrote in between
                done => {
                    let saved = done?;
                    return Ok(Posted { id: post.id.clone(), chars: post.chars(), saved });
                }
            }
        }
        Err(AuthoringRefusal::Unmet)
    }
}

/// What a new item is known by: a random UUID (RFC 9562 `#uuidv4`).
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
