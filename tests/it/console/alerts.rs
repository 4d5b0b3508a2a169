//! The alert address on the page of an account.

use feedgate_core::account::{Scope, Scopes};
use http::StatusCode;

use super::{Visitor, make_token, world_of_two};

const PAGE: &str = "/console/accounts/ada";

#[tokio::test]
async fn the_owner_of_an_account_sets_its_alert_address_and_nobody_else_sees_it() {
    let world = world_of_two().await;
    make_token(&world, "reader", [Scope::List].into_iter().collect::<Scopes>()).await;
    let visitor = Visitor::sign_in(&world, "ada", "ada").await;
    let url = world.subscriber.url("/alerts");
    let form = [
        ("action", "set-alerts"),
        ("url", &*url),
        ("secret", "opensesame"),
        ("kind", "failing"),
        ("kind", "suspended"),
    ];
    assert_eq!(visitor.act(PAGE, &form).await.status(), StatusCode::SEE_OTHER);
    let page = visitor.page(PAGE).await;
    assert!(page.contains(&url) && !page.contains("opensesame"), "{page}");
    assert_eq!(page.matches("name=\"kind\" value=\"failing\" checked").count(), 1, "{page}");
    assert_eq!(page.matches("name=\"kind\"").count(), 6, "{page}");
    assert_eq!(page.matches("\" checked").count(), 2, "{page}");
    for (url, kind) in [("nowhere", "failing"), ("http://10.0.0.1/", "failing"), (&*url, "late")] {
        let form = [("action", "set-alerts"), ("url", url), ("kind", kind)];
        assert_eq!(visitor.act(PAGE, &form).await.status(), StatusCode::UNPROCESSABLE_ENTITY);
    }
    let root = Visitor::sign_in(&world, "root", "root").await;
    assert!(!root.page(PAGE).await.contains(&url), "it may have a key in it");
    assert_eq!(root.act(PAGE, &form).await.status(), StatusCode::NOT_FOUND);
    let reader = Visitor::sign_in(&world, "reader", "reader").await;
    let own = "/console/accounts/reader";
    assert_eq!(reader.act(own, &form).await.status(), StatusCode::FORBIDDEN);

    let delete = [("action", "delete-alerts")];
    assert_eq!(visitor.act(PAGE, &delete).await.status(), StatusCode::SEE_OTHER);
    assert!(!visitor.page(PAGE).await.contains(&url));
}
