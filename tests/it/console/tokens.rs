//! Tokens in the console: what a session may do with those of its account (H7).

use chrono::{DateTime, TimeDelta, Utc};
use feedgate::jobs::runner;
use feedgate_core::account::{NewToken, Scope, Scopes, TokenHash, TokenInfo};
use http::StatusCode;
use http::header::LOCATION;
use reqwest::Response;

use super::{Visitor, link, make_token, subscribe};
use crate::store::on_both_stores;
use crate::support::gateway::Gateway;
use crate::support::postgres::Database;
use crate::support::server::client;
use crate::support::world::World;

on_both_stores!(
    h07_a_token_manages_tokens_only_with_the_scope_for_it,
    h07_a_child_has_at_most_the_rights_and_the_end_of_its_parent_and_dies_with_it,
    h07_every_action_of_the_console_needs_its_scope,
    h07_tokens_of_the_release_before_manage_tokens_if_they_could_do_everything,
);

const PAGE: &str = "/console/accounts/ada";

async fn world_on(database: Database) -> World {
    let gateway = Gateway::start(&database, &[]).await;
    let world = World::on(database, gateway).await;
    world.put_tides(3);
    world
}

/// Creates a token of `ada`, and returns its number.
pub(super) async fn create(
    world: &World,
    secret: &str,
    scopes: Scopes,
    expires_at: Option<DateTime<Utc>>,
) -> i64 {
    let store = world.database.open().await;
    let hash = TokenHash::from_token(secret);
    let (login, name) = ("ada".to_owned(), secret.to_owned());
    let token = NewToken { login, name, scopes, hash, expires_at };
    let number = store.create_token(&token, runner::now()).await.unwrap();
    store.close().await;
    number
}

async fn tokens(world: &World) -> Vec<TokenInfo> {
    let store = world.database.open().await;
    let tokens = store.tokens_of("ada").await.unwrap();
    store.close().await;
    tokens
}

async fn is_valid(world: &World, token: &str) -> bool {
    let request = client().get(world.gateway.url("/?hub.mode=authenticate"));
    request.basic_auth("ada", Some(token)).send().await.unwrap().status().is_success()
}

/// Creates a token with that of the session, and returns it.
async fn create_child(visitor: &Visitor<'_>, form: &[(&str, &str)]) -> String {
    let form = [&[("action", "create-token")], form].concat();
    let response = visitor.act(PAGE, &form).await;
    let (status, page) = (response.status(), response.text().await.unwrap());
    assert_eq!(status, StatusCode::OK, "{page}");
    let (_, token) = page.split_once("<code>ada:").unwrap();
    token.split('<').next().unwrap().to_owned()
}

async fn revoke(visitor: &Visitor<'_>, number: i64) -> Response {
    let number = number.to_string();
    visitor.act(PAGE, &[("action", "revoke-token"), ("token", &number)]).await
}

async fn h07_a_token_manages_tokens_only_with_the_scope_for_it(database: Database) {
    let world = world_on(database).await;
    let owner = create(&world, "owner", Scopes::of_owner(), None).await;
    let list: Scopes = [Scope::List].into_iter().collect();
    create(&world, "list", list, None).await;
    create(&world, "subscriber", Scopes::of_subscriber(), None).await;
    let day = runner::now() + TimeDelta::days(1);
    create(&world, "day", Scopes::of_owner(), Some(day)).await;
    create(&world, "narrow", list.with(Scope::Tokens), None).await;

    for secret in ["list", "subscriber"] {
        let visitor = Visitor::sign_in(&world, "ada", secret).await;
        let page = visitor.page(PAGE).await;
        assert!(!page.contains("create-token") && !page.contains("revoke-token"), "{page}");
        assert!(!page.contains(">owner<"), "{secret} sees its own token only: {page}");
        assert_eq!(revoke(&visitor, owner).await.status(), StatusCode::FORBIDDEN, "{secret}");
        let form = [("action", "create-token"), ("scope", "list")];
        assert_eq!(visitor.act(PAGE, &form).await.status(), StatusCode::FORBIDDEN, "{secret}");
    }
    for (secret, why) in [("day", "it ends before"), ("narrow", "it has fewer rights")] {
        let visitor = Visitor::sign_in(&world, "ada", secret).await;
        assert_eq!(revoke(&visitor, owner).await.status(), StatusCode::FORBIDDEN, "{why}");
    }
    assert!(is_valid(&world, "owner").await);
    assert_eq!(tokens(&world).await.len(), 5);

    let visitor = Visitor::sign_in(&world, "ada", "owner").await;
    for token in tokens(&world).await.iter().filter(|token| token.id != owner) {
        assert_eq!(revoke(&visitor, token.id).await.status(), StatusCode::SEE_OTHER);
        assert!(!is_valid(&world, &token.name).await);
    }
}

async fn h07_a_child_has_at_most_the_rights_and_the_end_of_its_parent_and_dies_with_it(
    database: Database,
) {
    let world = world_on(database).await;
    let day = runner::now() + TimeDelta::days(1);
    let parent = create(&world, "parent", Scopes::of_owner(), Some(day)).await;
    let visitor = Visitor::sign_in(&world, "ada", "parent").await;
    let page = visitor.page(PAGE).await;
    assert!(page.contains("that you are signed in with, <b>parent</b>: when that"), "{page}");
    assert!(page.contains("<dt>Files</dt><dd><span class=\"absent\">none"), "{page}");
    let form = [("action", "create-token"), ("scope", "admin")];
    assert_eq!(visitor.act(PAGE, &form).await.status(), StatusCode::FORBIDDEN);

    let scopes = [("scope", "list"), ("scope", "tokens")];
    let endless = create_child(&visitor, &scopes).await;
    let longer = create_child(&visitor, &[("scope", "list"), ("days", "3650")]).await;
    let children = tokens(&world).await;
    assert_eq!(children.len(), 3);
    for child in &children[1..] {
        assert_eq!((child.parent, child.expires_at), (Some(parent), children[0].expires_at));
    }
    let child = Visitor::sign_in(&world, "ada", &endless).await;
    let grandchild = create_child(&child, &[("scope", "list")]).await;
    let signed_in = Visitor::sign_in(&world, "ada", &grandchild).await;
    assert!(signed_in.page("/console").await.contains("<h1>Overview"));
    assert_eq!(revoke(&child, parent).await.status(), StatusCode::FORBIDDEN);

    let store = world.database.open().await;
    assert!(store.revoke_token(parent, runner::now()).await.unwrap());
    store.close().await;
    for token in ["parent", &endless, &longer, &grandchild] {
        assert!(!is_valid(&world, token).await, "{token}");
    }
    for visitor in [&visitor, &child, &signed_in] {
        assert!(visitor.page("/console").await.contains("<h1>Sign in</h1>"));
    }
}

async fn h07_every_action_of_the_console_needs_its_scope(database: Database) {
    let world = world_on(database).await;
    let rights = [Scope::List, Scope::Tokens, Scope::Admin];
    make_token(&world, "root", rights.into_iter().collect()).await;
    make_token(&world, "bob", Scopes::of_subscriber()).await;
    make_token(&world, "admin", [Scope::Admin].into_iter().collect()).await;
    subscribe(&world, "bob", "/bob").await;
    let root = Visitor::sign_in(&world, "root", "root").await;
    let feed = link(&root.page("/console/feeds").await, "console/feeds");
    let subscription = link(&root.page("/console/subscriptions").await, "console/subscriptions");
    let number = subscription.rsplit_once('/').unwrap().1;
    let topic = world.topic.as_str();
    #[rustfmt::skip]
    let actions: [(&str, &[(&str, &str)]); 14] = [
        (&subscription,           &[("action", "pause")]),
        (&subscription,           &[("action", "resume")]),
        (&subscription,           &[("action", "retry")]),
        (&subscription,           &[("action", "test")]),
        (&subscription,           &[("action", "replay")]),
        (&subscription,           &[("action", "rotate-secret")]),
        (&subscription,           &[("action", "end")]),
        ("/console/subscriptions", &[("action", "pause"), ("id", number)]),
        ("/console/subscriptions", &[("action", "end"), ("id", number), ("confirmed", "1")]),
        (&feed,                   &[("action", "poll")]),
        ("/console/feeds/add",    &[("url", topic)]),
        ("/console/opml",         &[("opml", "<opml/>")]),
        ("/console/accounts/bob", &[("action", "create-token"), ("scope", "subscribe")]),
        ("/console/accounts",     &[("login", "eve"), ("scope", "list")]),
    ];
    let csrf = |page: &str| {
        let (_, token) = page.split_once("name=\"csrf_token\" value=\"").unwrap();
        token.split('"').next().unwrap().to_owned()
    };
    let token = csrf(&root.page("/console").await);
    for (path, form) in actions {
        let response = root.post(path, &[form, &[("csrf_token", token.as_str())]].concat()).await;
        assert_eq!(response.status(), StatusCode::FORBIDDEN, "{path} {form:?}");
    }
    assert_eq!(root.get(&format!("{feed}/entries/1")).await.0, StatusCode::FORBIDDEN);
    let page = root.page(&feed).await;
    assert!(!page.contains("/entries/1"), "entries are for those who may retrieve them: {page}");

    // An administrator without the scope manages accounts, and creates no tokens.
    let admin = Visitor::sign_in(&world, "admin", "admin").await;
    let token = csrf(&admin.page("/console").await);
    let form = [("login", "eve"), ("csrf_token", token.as_str())];
    assert_eq!(admin.post("/console/accounts", &form).await.status(), StatusCode::FORBIDDEN);
    let done = admin.act("/console/accounts/bob", &[("action", "deactivate")]).await;
    assert!(done.headers()[LOCATION].to_str().unwrap().contains("deactivated"));
    // Who is no administrator is told of no other account.
    let done = admin.act("/console/accounts/bob", &[("action", "activate")]).await;
    assert_eq!(done.status(), StatusCode::SEE_OTHER);
    let bob = Visitor::sign_in(&world, "bob", "bob").await;
    let token = csrf(&bob.page("/console").await);
    let form = [("action", "deactivate"), ("csrf_token", token.as_str())];
    for (path, want) in [
        ("/console/accounts/root", StatusCode::NOT_FOUND),
        ("/console/accounts/bob", StatusCode::BAD_REQUEST),
    ] {
        assert_eq!(bob.post(path, &form).await.status(), want, "{path}");
    }
}

async fn h07_tokens_of_the_release_before_manage_tokens_if_they_could_do_everything(
    database: Database,
) {
    let world = world_on(database).await;
    let publish: Scopes = [Scope::List, Scope::Publish].into_iter().collect();
    let admin: Scopes = [Scope::Admin].into_iter().collect();
    for (secret, scopes) in [("all", Scopes::of_subscriber()), ("some", publish), ("admin", admin)]
    {
        create(&world, secret, scopes, None).await;
    }
    // As the release before stored them.
    world.database.run("update tokens set manages_tokens = null").await;
    let found = tokens(&world).await;
    let may_manage = found.iter().map(|token| token.scopes.allow(Scope::Tokens));
    assert_eq!(may_manage.collect::<Vec<_>>(), [true, false, true]);
    let visitor = Visitor::sign_in(&world, "ada", "all").await;
    assert!(is_valid(&world, &create_child(&visitor, &[("scope", "list")]).await).await);
}
