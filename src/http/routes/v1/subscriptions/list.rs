//! Listing the subscriptions of an account, in the order of their numbers.

use std::sync::Arc;

use warp::reply::Response;

use super::view;
use crate::http::kit::rejection::Rejection;
use crate::http::kit::request::Request;
use crate::http::routes::v1::call::RestCall;
use crate::http::routes::v1::feed_id;
use crate::http::routes::v1::paging::PageRequest;
use crate::http::state::Gateway;
use crate::jobs::runner;
use feedgate_core::account::Scope;
use feedgate_core::resource::ResourceId;
use feedgate_core::store::{ListedSubscription, SubscriptionRange};
use feedgate_core::topic::Topic;

/// The subscriptions that are compared with `callback` and `state` for one page.
const MOST_COMPARED: usize = 500;

/// The states of subscriptions (`DeliveryState`).
const STATES: [&str; 6] = ["ok", "pending", "delivering", "failing", "paused", "suspended"];

/// Returns a page of the subscriptions of an account.
pub(super) async fn list(gateway: &Arc<Gateway>, request: &Request) -> Result<Response, Rejection> {
    let parameters = ["limit", "cursor", "feed", "url", "callback", "state"];
    let call = RestCall::begin(gateway, request, Scope::List, &parameters).await?;
    let page = PageRequest::from_call(&call, "subscriptions")?;
    let selection = Selection::from_call(&call)?;
    let after = page.after_number()?;
    let resource = match selected_resource(&call).await? {
        SelectedResource::All => None,
        SelectedResource::One(id) => Some(id),
        SelectedResource::None => return Ok(page.to_reply(&call, Vec::new(), None::<i64>)),
    };
    let limit = if selection.compares() { MOST_COMPARED } else { page.limit };
    let account = call.access.account;
    let charge = call.admit_rows(limit)?;
    let found =
        gateway.store.list_range(SubscriptionRange { account, resource, after, limit }).await;
    let found = found.map_err(|err| Rejection::unavailable(&err))?;
    charge.return_unread(found.len());
    let (mut data, mut next) = (Vec::new(), None);
    for (compared, listed) in (1..).zip(&found) {
        if selection.matches(listed) {
            data.push(view::subscription(&call, listed));
        }
        let may_be_more = compared < found.len() || found.len() == limit;
        next = may_be_more.then_some(listed.subscription.id.number);
        if data.len() == page.limit {
            break;
        }
    }
    Ok(page.to_reply(&call, data, next))
}

/// The resource whose subscriptions are listed.
enum SelectedResource {
    All,
    One(ResourceId),
    /// The URL is not subscribed to.
    None,
}

/// Returns the resource that `feed` or `url` names.
async fn selected_resource(call: &RestCall<'_>) -> Result<SelectedResource, Rejection> {
    let by_id = call.query.get("feed").map(|text| feed_id::parse_parameter("feed", text));
    let Some(url) = call.query.get("url") else {
        return Ok(match by_id.transpose()? {
            Some(id) => SelectedResource::One(id),
            None => SelectedResource::All,
        });
    };
    if by_id.is_some() {
        let reason = "feed and url cannot be used together.".to_owned();
        return Err(RestCall::reject_parameter("url", reason));
    }
    let Ok(topic) = Topic::parse(url) else { return Ok(SelectedResource::None) };
    let topic = call.gateway.subscribe.resolve(&topic, Some(call.access.account), None).await;
    let topic = topic.map_err(|err| Rejection::unavailable(&err))?;
    let found = call.gateway.store.find(topic.as_str()).await;
    let found = found.map_err(|err| Rejection::unavailable(&err))?;
    Ok(found.map_or(SelectedResource::None, |resource| SelectedResource::One(resource.id)))
}

/// Which of the subscriptions that are read are listed.
struct Selection<'q> {
    callback: Option<&'q str>,
    state: Option<&'q str>,
}

impl<'q> Selection<'q> {
    fn from_call(call: &'q RestCall<'_>) -> Result<Selection<'q>, Rejection> {
        let (callback, state) = (call.query.get("callback"), call.query.get("state"));
        if state.is_some_and(|state| !STATES.contains(&state)) {
            let reason = format!("state must be one of {}.", STATES.join(", "));
            return Err(RestCall::reject_parameter("state", reason));
        }
        Ok(Selection { callback, state })
    }

    fn compares(&self) -> bool {
        self.callback.is_some() || self.state.is_some()
    }

    fn matches(&self, listed: &ListedSubscription) -> bool {
        let ListedSubscription { subscription, delivery, .. } = listed;
        let state = || delivery.state(subscription, runner::now()).as_str();
        self.callback.is_none_or(|callback| subscription.callback.as_str() == callback)
            && self.state.is_none_or(|wanted| state() == wanted)
    }
}
