//! A request to the console, with the session of the browser that sent it.
//!
//! A session is a random value in a cookie, of which only the hash is stored. It has the account and
//! the scopes of the token with which it was begun, and ends with that token (S38, S39). The API never
//! reads the cookie.

use std::fmt;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{StatusCode, header};
use maud::{Markup, html};
use sha2::{Digest, Sha256};
use url::form_urlencoded;
use warp::reply::Response;

use crate::http::kit::auth;
use crate::http::kit::html::parts::crumbs;
use crate::http::kit::html::{HtmlPage, Interaction, Place, Reader, Width, address};
use crate::http::kit::not_found_page;
use crate::http::kit::params::{self, BodyFormats};
use crate::http::kit::rejection::Rejection;
use crate::http::kit::reply::{empty, set_header};
use crate::http::kit::request::Request;
use crate::http::kit::session_cookie;
use crate::http::state::Gateway;
use crate::jobs::runner;
use feedgate_core::account::{Access, AccountId, SESSION_IDLE, Scope, SessionHash};
use feedgate_core::store::StoreError;
use feedgate_protocol::form::Form;

/// The scripts of each page.
const SCRIPTS: Interaction = Interaction::Scripts(&["console/page.js"]);

/// A browser that is signed in.
#[derive(Clone)]
pub(crate) struct Session {
    /// The account, and what it may do.
    pub(crate) access: Access,
    /// The value of the cookie.
    cookie: String,
    /// What the forms of the session's pages carry.
    csrf_token: String,
}

impl Session {
    fn new(access: Access, cookie: &str) -> Session {
        let csrf_token = Sha256::new().chain_update("csrf token of ").chain_update(cookie);
        let csrf_token = URL_SAFE_NO_PAD.encode(csrf_token.finalize());
        Session { access, cookie: cookie.to_owned(), csrf_token }
    }

    /// Finds the session of the browser that sends a request.
    pub(crate) async fn find(
        gateway: &Gateway,
        request: &Request,
    ) -> Result<Option<Session>, StoreError> {
        let Some(value) = session_cookie::value(gateway, request) else { return Ok(None) };
        let hash = SessionHash::from_cookie(value);
        let access = gateway.store.session(&hash, SESSION_IDLE, runner::now()).await?;
        Ok(access.map(|access| Session::new(access, value)))
    }

    /// Returns whether the session goes on: it was not ended, and its token is still valid.
    pub(crate) async fn is_valid(&self, gateway: &Gateway) -> Result<bool, StoreError> {
        let hash = SessionHash::from_cookie(&self.cookie);
        Ok(gateway.store.session(&hash, SESSION_IDLE, runner::now()).await?.is_some())
    }

    /// Returns the reader of the pages of this session.
    pub(crate) fn reader(&self) -> Reader<'_> {
        let Access { login, scopes, .. } = &self.access;
        let may_list = scopes.allow(Scope::List) || scopes.allow(Scope::Admin);
        Reader::Account { login, may_list, csrf_token: &self.csrf_token }
    }
}

/// Does not print the cookie.
impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("access", &self.access).finish_non_exhaustive()
    }
}

/// The most slashes in the path of a page after the first.
const MAX_FOLDERS: usize = 16;

/// A request to the console.
pub(super) struct Visit {
    pub(super) gateway: Arc<Gateway>,
    pub(super) request: Request,
    /// The parameters of the query and of the form.
    pub(super) form: Form,
    session: Option<Session>,
    /// The way from the page to the root of the gateway.
    root: String,
}

impl Visit {
    /// Reads a request and finds its session.
    pub(super) async fn begin(gateway: Arc<Gateway>, request: Request) -> Result<Visit, Rejection> {
        let form = params::read(&request, BodyFormats::Any)?;
        let session = Session::find(&gateway, &request).await;
        let session = session.map_err(|err| Rejection::unavailable(&err))?;
        // Every link of the page repeats the way to the root.
        let folders = request.path.matches('/').count().saturating_sub(1);
        if folders > MAX_FOLDERS {
            return Err(Rejection::new(StatusCode::NOT_FOUND, "There is no such page."));
        }
        let root = "../".repeat(folders);
        Ok(Visit { gateway, request, form, session, root })
    }

    /// Returns the session, if the browser is signed in.
    pub(super) fn session(&self) -> Option<&Session> {
        self.session.as_ref()
    }

    /// Returns the session, which the browser must be signed in with.
    pub(super) fn require_session(&self) -> Result<&Session, Rejection> {
        let session = self.session.as_ref();
        session.ok_or_else(|| Rejection::new(StatusCode::UNAUTHORIZED, "Please sign in."))
    }

    /// Returns the account, and what it may do.
    pub(super) fn access(&self) -> Result<&Access, Rejection> {
        self.require_session().map(|session| &session.access)
    }

    /// Returns whether everything is shown, not only what belongs to the account.
    pub(super) fn is_admin(&self) -> bool {
        self.allows(Scope::Admin)
    }

    /// Returns whether the token of the session has this scope. Pages do not offer what it may not do.
    pub(super) fn allows(&self, scope: Scope) -> bool {
        self.access().is_ok_and(|access| access.scopes.allow(scope))
    }

    /// Returns the account whose feeds and subscriptions are shown; `None` shows all. Fails if the token
    /// of the session may not list them.
    pub(super) fn visible_account(&self) -> Result<Option<AccountId>, Rejection> {
        let access = self.access()?;
        if access.scopes.allow(Scope::Admin) {
            return Ok(None);
        }
        auth::require(access, Scope::List)?;
        Ok(Some(access.account))
    }

    /// Rejects a form that no page of this session has sent (S38).
    pub(super) fn check_form(&self) -> Result<(), Rejection> {
        let expected = self.session.as_ref().map(|session| session.csrf_token.as_str());
        let is_ours = self.form.get_verbatim("csrf_token") == expected && expected.is_some();
        match is_ours && !self.request.is_cross_origin() {
            true => Ok(()),
            false => {
                let reason = "This form is too old or comes from another site. Please reload the \
                              page and send it again.";
                Err(Rejection::new(StatusCode::FORBIDDEN, reason).with_code("cross_site"))
            }
        }
    }

    /// Returns a parameter without surrounding spaces; empty if it is missing.
    pub(super) fn value(&self, name: &str) -> &str {
        self.form.get(name).unwrap_or_default().trim()
    }

    /// Returns the way from the page to the root of the gateway.
    pub(super) fn root(&self) -> &str {
        &self.root
    }

    /// Returns the relative address of `path`, which begins at the root of the gateway.
    pub(super) fn address(&self, path: &str) -> String {
        address(&self.root, path)
    }

    /// Returns the relative address of `path` with one parameter.
    pub(super) fn address_with(&self, path: &str, name: &str, value: &str) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        self.address(&format!("{path}?{}", query.append_pair(name, value).finish()))
    }

    /// Returns the hidden field that each form of the console needs.
    pub(super) fn csrf_field(&self) -> Markup {
        let token = self.session.as_ref().map_or("", |session| session.csrf_token.as_str());
        html! { input type="hidden" name="csrf_token" value=(token); }
    }

    /// Returns the way to a page: the pages above it, each with its name and its path.
    pub(super) fn crumbs(&self, above: &[(&str, &str)]) -> Markup {
        crumbs(above.iter().map(|(name, path)| (*name, self.address(path))))
    }

    /// Returns a page below the entry `section` of the navigation.
    pub(super) fn page(&self, title: &str, section: &str, content: Markup) -> Response {
        self.page_with(StatusCode::OK, (title, section, Width::Table), content)
    }

    /// Returns a page with a status and a width.
    pub(super) fn page_with(
        &self,
        status: StatusCode,
        (title, section, width): (&str, &str, Width),
        content: Markup,
    ) -> Response {
        let place = Place { section, ..self.place() };
        HtmlPage { title, width, interaction: SCRIPTS, place, content }.reply(status)
    }

    /// Returns a page below the entry `section` of the navigation with scripts of its own.
    pub(super) fn page_with_scripts(
        &self,
        (title, section): (&str, &str),
        interaction: Interaction,
        content: Markup,
    ) -> Response {
        let place = Place { section, ..self.place() };
        HtmlPage { title, width: Width::Table, interaction, place, content }.reply(StatusCode::OK)
    }

    fn place(&self) -> Place<'_> {
        let reader = self.session.as_ref().map_or(Reader::Anybody, Session::reader);
        Place { root: &self.root, section: "", reader, alternate: None }
    }

    /// Returns the page for a rejected request.
    pub(super) fn rejected(&self, rejection: &Rejection) -> Response {
        let status = rejection.status();
        let title = match status {
            StatusCode::NOT_FOUND => not_found_page::TITLE,
            status => status.canonical_reason().unwrap_or("Error"),
        };
        let may_list = self.allows(Scope::List) || self.is_admin();
        let content = html! {
            p role="alert" { (rejection.reason()) }
            p.actions {
                a.button href=(self.address("console")) { "Go to the overview" }
                @if may_list && status == StatusCode::NOT_FOUND {
                    a.button href=(self.address("console/feeds")) { "All feeds" }
                    a.button href=(self.address("console/subscriptions")) { "All subscriptions" }
                }
            }
        };
        let response = self.page_with(rejection.status(), (title, "", Width::Text), content);
        rejection.set_retry_after(response)
    }

    /// Returns the redirect to another page after a change.
    pub(super) fn see_other(&self, path: &str) -> Response {
        let mut response = empty(StatusCode::SEE_OTHER);
        set_header(&mut response, header::LOCATION, &self.address(path));
        response
    }

    /// Returns the hash of the session's cookie.
    pub(super) fn session_hash(&self) -> Option<SessionHash> {
        self.session.as_ref().map(|session| SessionHash::from_cookie(&session.cookie))
    }
}

/// Sets the cookie of a session; an empty value deletes it. Other sites on the host of this gateway
/// are not sent it.
pub(super) fn set_cookie(gateway: &Gateway, response: &mut Response, value: &str) {
    let name = session_cookie::name(gateway);
    let secure = if name.starts_with("__") { "; Secure" } else { "" };
    let age = if value.is_empty() { 0 } else { SESSION_IDLE.num_seconds() };
    let path = gateway.settings.public_url.path();
    let cookie =
        format!("{name}={value}; Path={path}; HttpOnly; SameSite=Lax; Max-Age={age}{secure}");
    set_header(response, header::SET_COOKIE, &cookie);
}
