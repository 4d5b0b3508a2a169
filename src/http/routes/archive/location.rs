//! Resolution of a path to an archive, and the permission to read it.

use http::StatusCode;
use percent_encoding::percent_decode_str;

use super::document_cache::DocumentKey;
use super::render::Order;
use crate::http::kit::rejection::Rejection;
use crate::http::kit::request::Request;
use crate::http::kit::{auth, params};
use crate::http::state::Gateway;
use crate::jobs::collect::{archive_topic, unguessable};
use crate::jobs::runner;
use feedgate_core::account::{Access, Scope};
use feedgate_core::collection::{Collection, CollectionKind, CollectionName};
use feedgate_core::document_format::DocumentFormat;
use feedgate_core::resource::{Resource, ResourceId, ResourceKind};
use feedgate_core::store::StoreError;

/// The owner of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ArchiveOwner {
    /// One resource.
    Feed(ResourceId),
    /// All public resources.
    All,
    /// A collection configured by the operator.
    Named(CollectionName),
    /// All resources that the account with this login subscribes to.
    Account(String),
}

/// A document about an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DocumentName {
    /// The newest entries as a plain feed, for readers that know no archives.
    Newest,
    /// The recent document.
    Recent,
    /// The document with this number.
    Numbered(i64),
}

/// An archive that the client may read.
#[derive(Clone, Debug)]
pub(super) struct ArchiveLocation {
    /// The resource whose log is the archive.
    pub(super) id: ResourceId,
    /// The URL of the archive, without a trailing slash.
    pub(super) home: String,
    /// Whether the log is that of a collection.
    pub(super) is_collection: bool,
    /// Whether only one account may read the archive.
    pub(super) is_private: bool,
}

impl ArchiveLocation {
    /// Returns the key of the recent document in a format.
    pub(super) fn key(&self, format: DocumentFormat) -> DocumentKey {
        let ArchiveLocation { id, is_collection, is_private, .. } = *self;
        let (number, order, filter) = (None, Order::NewestFirst, None);
        DocumentKey { id, is_collection, is_private, number, order, format, filter }
    }

    /// Returns whether this is the archive of `resource`.
    pub(super) fn is_of(&self, resource: &Resource) -> bool {
        match self.is_collection {
            true => resource.kind == ResourceKind::Collection,
            false if resource.kind == ResourceKind::Collection => false,
            false => self.is_private || resource.is_readable(),
        }
    }
}

/// Parses `feeds/7`, `all`, `feeds/7/recent` or `all/documents/3`.
pub(super) fn parse_path(path: &str) -> Option<(ArchiveOwner, DocumentName)> {
    let Some((first, rest)) = path.split_once('/') else {
        return (path == "all").then_some((ArchiveOwner::All, DocumentName::Newest));
    };
    let (owner, rest) = match first {
        "all" => (ArchiveOwner::All, rest),
        "feeds" => {
            let Some((id, rest)) = rest.split_once('/') else {
                let owner = ArchiveOwner::Feed(ResourceId(number(rest)?));
                return Some((owner, DocumentName::Newest));
            };
            (ArchiveOwner::Feed(ResourceId(number(id)?)), rest)
        }
        "collections" => {
            let Some((name, rest)) = rest.split_once('/') else {
                let owner = ArchiveOwner::Named(CollectionName::parse(rest)?);
                return Some((owner, DocumentName::Newest));
            };
            (ArchiveOwner::Named(CollectionName::parse(name)?), rest)
        }
        "accounts" => {
            let (login, rest) =
                rest.split_once('/').map_or((rest, None), |(login, rest)| (login, Some(rest)));
            let login = percent_decode_str(login).decode_utf8().ok()?;
            let owner = ArchiveOwner::Account(login.into_owned());
            let Some(rest) = rest else { return Some((owner, DocumentName::Newest)) };
            (owner, rest)
        }
        _ => return None,
    };
    let name = match rest.split_once('/') {
        None if rest == "recent" => DocumentName::Recent,
        Some(("documents", page)) => DocumentName::Numbered(number(page)?),
        _ => return None,
    };
    Some((owner, name))
}

fn number(text: &str) -> Option<i64> {
    text.parse::<i64>().ok().filter(|number| number.to_string() == text)
}

/// Returns the archive, if it exists. Rejects the request if the client may not read it.
pub(super) async fn find(
    gateway: &Gateway,
    request: &Request,
    owner: ArchiveOwner,
) -> Result<Option<ArchiveLocation>, Rejection> {
    let (scope, folder, account) = match owner {
        ArchiveOwner::Feed(id) => {
            let home = gateway.public_url(&format!("feeds/{id}"));
            let is_private = is_of_account(gateway, request, id).await?;
            return Ok(Some(ArchiveLocation { id, home, is_collection: false, is_private }));
        }
        ArchiveOwner::All if !gateway.settings.collects_all => return Ok(None),
        ArchiveOwner::All => (CollectionKind::All, vec!["all".to_owned()], None),
        ArchiveOwner::Named(name) => {
            let mut all = gateway.settings.collections.iter();
            let Some(found) = all.find(|configured| configured.name == name) else {
                return Ok(None);
            };
            if let Some(login) = &found.account {
                authenticate_owner(gateway, request, login).await?;
            }
            let folder = vec!["collections".to_owned(), name.as_str().to_owned()];
            (CollectionKind::Named(name), folder, found.account.clone())
        }
        ArchiveOwner::Account(login) => {
            let access = authenticate_owner(gateway, request, &login).await?;
            let folder = vec!["accounts".to_owned(), login.clone()];
            (CollectionKind::Account(access.account), folder, Some(login))
        }
    };
    let opened = open_collection(gateway, &scope, account.as_deref()).await;
    let Some(collection) = opened.map_err(|err| Rejection::unavailable(&err))? else {
        return Ok(None);
    };
    let folder: Vec<&str> = folder.iter().map(String::as_str).collect();
    let recent = archive_topic(&gateway.settings.public_url, &folder);
    let home = recent.as_str().trim_end_matches("/recent").to_owned();
    let (id, is_private) = (collection.id, account.is_some());
    Ok(Some(ArchiveLocation { id, home, is_collection: true, is_private }))
}

/// Returns whether an archive belongs to the account whose credentials the request has, and not to
/// everybody (rule S56). Whoever may not read it is answered as if it did not exist.
async fn is_of_account(
    gateway: &Gateway,
    request: &Request,
    id: ResourceId,
) -> Result<bool, Rejection> {
    let form = params::read_query(request);
    if !auth::has_credentials(request, &form) {
        return Ok(false);
    }
    let found = gateway.store.get(id).await.map_err(|err| Rejection::unavailable(&err))?;
    match found {
        Some(resource) if resource.is_readable() => Ok(false),
        found => belongs_to_client(gateway, request, found.as_ref()).await,
    }
}

/// Returns whether a resource that is not for everybody belongs to the account of a request. One that
/// does not exist belongs to nobody, and is answered alike.
pub(super) async fn belongs_to_client(
    gateway: &Gateway,
    request: &Request,
    resource: Option<&Resource>,
) -> Result<bool, Rejection> {
    let form = params::read_query(request);
    if !auth::has_credentials(request, &form) {
        return Ok(false);
    }
    let access = auth::authenticate(gateway, request, &form).await?;
    auth::require(&access, Scope::Retrieve)?;
    let Some(resource) = resource else { return Ok(false) };
    let may_read = gateway.subscribe.may_read(resource, Some(access.account)).await;
    may_read.map_err(|err| Rejection::unavailable(&err))
}

/// Returns the collection. That of an account is created on the first request, so that accounts
/// that do not use it cost nothing.
async fn open_collection(
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
    let title = format!("All subscriptions of {login}");
    let collection = Collection { scope: scope.clone(), topic, title };
    gateway.store.open_collection(&collection, runner::now()).await.map(Some)
}

/// Authenticates the account with this login, and no other.
async fn authenticate_owner(
    gateway: &Gateway,
    request: &Request,
    login: &str,
) -> Result<Access, Rejection> {
    let form = params::read_query(request);
    let access = auth::authenticate(gateway, request, &form).await?;
    auth::require(&access, Scope::Retrieve)?;
    match access.login == login {
        true => Ok(access),
        false => {
            Err(Rejection::new(StatusCode::FORBIDDEN, "This archive belongs to another account."))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_published_paths_name_an_archive() {
        use DocumentName::{Newest, Numbered, Recent};
        let feed = |name| Some((ArchiveOwner::Feed(ResourceId(7)), name));
        let named = ArchiveOwner::Named(CollectionName::parse("news").unwrap());
        let account = ArchiveOwner::Account("a@b".to_owned());
        #[rustfmt::skip]
        let cases = [
            ("feeds/7/recent",            feed(Recent)),
            ("feeds/7/documents/3",       feed(Numbered(3))),
            ("feeds/7/documents/03",      None),
            ("feeds/7/documents/+3",      None),
            ("feeds/7/documents/3/",      None),
            ("feeds/7/recent/",           None),
            ("feeds/x/recent",            None),
            ("feeds/7",                   feed(Newest)),
            ("feeds/07",                  None),
            ("feeds/",                    None),
            ("all/recent",                Some((ArchiveOwner::All, Recent))),
            ("all/documents/1",           Some((ArchiveOwner::All, Numbered(1)))),
            ("all",                       Some((ArchiveOwner::All, Newest))),
            ("all/",                      None),
            ("feeds",                     None),
            ("collections/news",          Some((named.clone(), Newest))),
            ("collections/",              None),
            ("collections/news/recent",   Some((named, Recent))),
            ("collections/News/recent",   None),
            ("accounts/a%40b/recent",     Some((account.clone(), Recent))),
            ("accounts/a%40b",            Some((account, Newest))),
            ("accounts/a/b",              None),
        ];
        for (path, want) in cases {
            assert_eq!(parse_path(path), want, "{path}");
        }
    }
}
