//! What else publishers call the doors of the cloud.
//!
//! A `<cloud>` element names a path and a procedure, both "chosen freely" by whoever wrote
//! it (seed 001: `xmlStorageSystem.rssPleaseNotify`). Feeds keep such elements for decades;
//! an operator who takes over for another cloud lists its names, and its aggregators find
//! us without a change. A call is a call wherever it arrives.

use std::sync::Arc;

use http::StatusCode;
use warp::Filter;
use warp::filters::BoxedFilter;
use warp::path::FullPath;
use warp::reply::Response;

use crate::http::Gateway;
use crate::http::kit::exchange::{Asked, Door, explained, plain};
use crate::http::routes::{rpc, rsscloud};

const DOOR: Door = Door { name: "cloud_alias", methods: &["POST"], body_limit_bytes: 100 * 1024 };

/// What people are told who look at such an address with a browser.
const HELP: &str =
    "This is a cloud: POST here what an rssCloud client sends, as a form, XML-RPC or SOAP.";

/// What is meant by a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// A registration.
    Register,
    /// A ping.
    Ping,
    /// A cancellation.
    Cancel,
    /// A call, whose procedure says what it means.
    Call,
}

/// Further names of the cloud's doors, as the operator lists them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Aliases {
    paths: Vec<(String, Role)>,
    procedures: Vec<(String, Role)>,
}

impl Aliases {
    /// Adds paths: `/register,/changed=ping`. The error is the part that is none.
    pub fn add_paths(&mut self, list: &str) -> Result<(), String> {
        for part in parts(list) {
            let (path, role) = split(part);
            let role = role.filter(|_| path.starts_with('/')).ok_or(part)?;
            self.paths.push((path.to_owned(), role));
        }
        Ok(())
    }

    /// Adds procedures: `cloud.register,cloud.changed=ping`. The error is the part that is
    /// none.
    pub fn add_procedures(&mut self, list: &str) -> Result<(), String> {
        for part in parts(list) {
            let (name, role) = split(part);
            let is_meant = |role: &Role| matches!(role, Role::Register | Role::Ping);
            let role = role.filter(is_meant).filter(|_| !name.contains(['/', ' '])).ok_or(part)?;
            self.procedures.push((name.to_owned(), role));
        }
        Ok(())
    }

    /// These and the others.
    pub fn and(mut self, others: &Aliases) -> Aliases {
        self.paths.extend_from_slice(&others.paths);
        self.procedures.extend_from_slice(&others.procedures);
        self
    }

    /// What a form at this path means, if it is listed.
    fn path(&self, path: &str) -> Option<Role> {
        self.paths.iter().find(|(held, _)| held == path).map(|(_, role)| *role)
    }

    /// What this procedure means, if it is listed.
    pub(crate) fn procedure(&self, name: &str) -> Option<Role> {
        let named = self.procedures.iter().find(|(held, _)| held.eq_ignore_ascii_case(name));
        named.map(|(_, role)| *role)
    }
}

fn parts(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|part| !part.is_empty())
}

/// A name and what it is to mean; nothing if that is no word of ours.
fn split(part: &str) -> (&str, Option<Role>) {
    let (name, word) = part.split_once('=').unwrap_or((part, "register"));
    let role = match word.trim() {
        "register" => Some(Role::Register),
        "ping" => Some(Role::Ping),
        "cancel" => Some(Role::Cancel),
        "call" => Some(Role::Call),
        _ => None,
    };
    (name.trim(), role.filter(|_| !name.trim().is_empty()))
}

/// The routes of this door.
pub(crate) fn routes(gateway: &Arc<Gateway>) -> BoxedFilter<(Response,)> {
    let aliases = gateway.settings.aliases.clone();
    let listed = warp::path::full().and_then(move |path: FullPath| {
        let role = aliases.path(path.as_str()).ok_or_else(warp::reject::not_found);
        std::future::ready(role)
    });
    let messages = Some(rpc::messages(gateway));
    let door = DOOR.open_messages(gateway, listed.boxed(), messages, answer);
    door.map(|reply| explained(reply, HELP)).boxed()
}

async fn answer(gateway: Arc<Gateway>, asked: Asked, role: Role) -> Response {
    if asked.body.trim_ascii_start().starts_with(b"<") {
        return rpc::answer(gateway, asked).await;
    }
    match role {
        Role::Register => rsscloud::registered(gateway, asked).await,
        Role::Ping => rsscloud::pinged(gateway, asked).await,
        Role::Cancel => rsscloud::cancelled(gateway, asked).await,
        Role::Call => plain(StatusCode::BAD_REQUEST, "This address takes calls only."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_mean_what_the_operator_says() {
        let mut aliases = Aliases::default();
        aliases.add_paths("/register, /changed=ping,/rpc.php = call,").unwrap();
        aliases.add_procedures("cloud.subscribe,cloud.changed=ping").unwrap();
        assert_eq!(aliases.path("/register"), Some(Role::Register));
        assert_eq!(aliases.path("/changed"), Some(Role::Ping));
        assert_eq!(aliases.path("/rpc.php"), Some(Role::Call));
        assert_eq!(aliases.path("/register/"), None);
        assert_eq!(aliases.procedure("Cloud.Subscribe"), Some(Role::Register));
        assert_eq!(aliases.procedure("cloud.changed"), Some(Role::Ping));
        assert_eq!(aliases.procedure("changed"), None);
    }

    #[test]
    fn what_is_no_name_is_told() {
        for bad in ["register", "/a=b", "=ping"] {
            assert_eq!(Aliases::default().add_paths(bad), Err(bad.to_owned()), "{bad}");
        }
        for bad in ["a/b", "a=call", "=ping"] {
            assert_eq!(Aliases::default().add_procedures(bad), Err(bad.to_owned()), "{bad}");
        }
    }
}
