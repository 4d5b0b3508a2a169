//! Which log is asked for, where its archive is, and who may see it.

use http::StatusCode;
use percent_encoding::percent_decode_str;

use crate::http::Gateway;
use crate::http::kit::exchange::Asked;
use crate::http::kit::params::Refused;
use crate::http::routes::superfeedr;
use crate::jobs::collect::{archive_topic, unguessable};
use crate::jobs::runner;
use feedgate_core::account::{Access, Scope};
use feedgate_core::collection::{Collection, CollectionKind, CollectionName};
use feedgate_core::ports::StoreError;
use feedgate_core::resource::{Resource, ResourceId, ResourceKind};
use feedgate_protocol::form::Form;

/// Whose archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    /// That of a resource.
    Feed(ResourceId),
    /// That of everything that is public.
    All,
    /// That of a collection the operator describes.
    Named(CollectionName),
    /// That of all that the account with this login subscribes to.
    Account(String),
}

/// An archive that may be shown to who asks.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// Whose log it is.
    pub(super) id: ResourceId,
    /// Where its documents are.
    pub(super) home: String,
    /// Whether the log is that of a collection.
    pub(super) is_collection: bool,
    /// Whether it is for one account only.
    pub(super) is_private: bool,
}

impl Place {
    /// Whether the archive here is that of this resource.
    pub(super) fn shows(&self, resource: &Resource) -> bool {
        match self.is_collection {
            true => resource.kind == ResourceKind::Collection,
            false => is_public(resource),
        }
    }
}

/// Whether the archive of a resource is shown to everybody under its number.
pub(super) fn is_public(resource: &Resource) -> bool {
    resource.kind != ResourceKind::Collection && resource.topic.is_public()
}

/// Reads `feeds/7/recent` or `all/documents/3`; the recent document has no number.
pub(super) fn aim(path: &str) -> Option<(Whose, Option<i64>)> {
    let (first, rest) = path.split_once('/')?;
    let (whose, rest) = match first {
        "all" => (Whose::All, rest),
        "feeds" => {
            let (id, rest) = rest.split_once('/')?;
            (Whose::Feed(ResourceId(number(id)?)), rest)
        }
        "collections" => {
            let (name, rest) = rest.split_once('/')?;
            (Whose::Named(CollectionName::parse(name)?), rest)
        }
        "accounts" => {
            let (login, rest) = rest.split_once('/')?;
            let login = percent_decode_str(login).decode_utf8().ok()?;
            (Whose::Account(login.into_owned()), rest)
        }
        _ => return None,
    };
    let page = match rest.split_once('/') {
        None if rest == "recent" => None,
        Some(("documents", page)) => Some(number(page)?),
        _ => return None,
    };
    Some((whose, page))
}

fn number(text: &str) -> Option<i64> {
    text.parse::<i64>().ok().filter(|number| number.to_string() == text)
}

/// The archive, if there is one and it may be shown to who asks.
pub(super) async fn find(
    gateway: &Gateway,
    asked: &Asked,
    whose: Whose,
) -> Result<Option<Place>, Refused> {
    let (scope, folder, account) = match whose {
        Whose::Feed(id) => {
            let home = gateway.address(&format!("feeds/{id}"));
            return Ok(Some(Place { id, home, is_collection: false, is_private: false }));
        }
        Whose::All if !gateway.settings.collects_all => return Ok(None),
        Whose::All => (CollectionKind::All, vec!["all".to_owned()], None),
        Whose::Named(name) => {
            let mut all = gateway.settings.collections.iter();
            let Some(found) = all.find(|configured| configured.name == name) else {
                return Ok(None);
            };
            if let Some(login) = &found.account {
                owner(gateway, asked, login).await?;
            }
            let folder = vec!["collections".to_owned(), name.as_str().to_owned()];
            (CollectionKind::Named(name), folder, found.account.clone())
        }
        Whose::Account(login) => {
            let access = owner(gateway, asked, &login).await?;
            let folder = vec!["accounts".to_owned(), login.clone()];
            (CollectionKind::Account(access.account), folder, Some(login))
        }
    };
    let opened = open(gateway, &scope, account.as_deref()).await;
    let Some(collection) = opened.map_err(|err| superfeedr::broken(&err))? else { return Ok(None) };
    let folder: Vec<&str> = folder.iter().map(String::as_str).collect();
    let recent = archive_topic(&gateway.settings.public_url, &folder);
    let home = recent.as_str().trim_end_matches("/recent").to_owned();
    let (id, is_private) = (collection.id, account.is_some());
    Ok(Some(Place { id, home, is_collection: true, is_private }))
}

/// The collection. That of an account is made when it is first asked for, so that nobody
/// pays for it who does not use it.
async fn open(
    gateway: &Gateway,
    scope: &CollectionKind,
    login: Option<&str>,
) -> Result<Option<Resource>, StoreError> {
    let found = gateway.store.collection(scope).await?;
    let (None, CollectionKind::Account(account), Some(login)) = (&found, scope, login) else {
        return Ok(found);
    };
    let folder = ["accounts", &account.0.to_string()];
    let topic = unguessable(&archive_topic(&gateway.settings.public_url, &folder));
    let title = format!("All that {login} subscribes to");
    let collection = Collection { scope: scope.clone(), topic, title };
    gateway.store.open_collection(&collection, runner::now()).await.map(Some)
}

/// Makes sure that it is the account with this login that asks.
async fn owner(gateway: &Gateway, asked: &Asked, login: &str) -> Result<Access, Refused> {
    let form = Form::from_urlencoded(asked.query.as_bytes()).unwrap_or_default();
    let access = superfeedr::access(gateway, asked, &form).await?;
    superfeedr::demand(&access, Scope::Retrieve)?;
    match access.login == login {
        true => Ok(access),
        false => {
            Err(Refused::new(StatusCode::FORBIDDEN, "This archive is that of another account."))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_we_publish_lead_somewhere() {
        let feed = |number| Some((Whose::Feed(ResourceId(7)), number));
        let news = Whose::Named(CollectionName::parse("news").unwrap());
        #[rustfmt::skip]
        let cases = [
            ("feeds/7/recent",            feed(None)),
            ("feeds/7/documents/3",       feed(Some(3))),
            ("feeds/7/documents/03",      None),
            ("feeds/7/documents/+3",      None),
            ("feeds/7/documents/3/",      None),
            ("feeds/7/recent/",           None),
            ("feeds/x/recent",            None),
            ("feeds/7",                   None),
            ("feeds/",                    None),
            ("all/recent",                Some((Whose::All, None))),
            ("all/documents/1",           Some((Whose::All, Some(1)))),
            ("all/",                      None),
            ("collections/news/recent",   Some((news, None))),
            ("collections/News/recent",   None),
            ("accounts/a%40b/recent",     Some((Whose::Account("a@b".to_owned()), None))),
            ("accounts/recent",           None),
        ];
        for (path, want) in cases {
            assert_eq!(aim(path), want, "{path}");
        }
    }
}
