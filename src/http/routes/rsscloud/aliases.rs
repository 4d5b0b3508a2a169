//! Further names of the rssCloud endpoints, which the operator lists.
//!
//! A `<cloud>` element names a path and a procedure, both "chosen freely" by the author of the
//! feed (seed 001: `xmlStorageSystem.rssPleaseNotify`). Feeds keep such elements for decades. An
//! operator who takes over from another cloud lists its names, and its aggregators go on
//! working without a change.

/// The meaning of a request at an aliased path, or of a call of an aliased procedure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AliasRole {
    /// A registration.
    Register,
    /// A ping.
    Ping,
    /// A cancellation.
    Cancel,
    /// A call, whose meaning depends on its procedure.
    Call,
    /// A request to the WebSub hub.
    Hub,
}

/// Further paths and procedures of the rssCloud endpoints, as the operator lists them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CloudAliases {
    paths: Vec<(String, AliasRole)>,
    procedures: Vec<(String, AliasRole)>,
}

impl CloudAliases {
    /// Adds paths: `/register,/changed=ping`. The error is the part that cannot be read.
    pub fn add_paths(&mut self, list: &str) -> Result<(), String> {
        for part in parts(list) {
            let (path, role) = split(part);
            let role = role.filter(|_| path.starts_with('/')).ok_or(part)?;
            self.paths.push((path.to_owned(), role));
        }
        Ok(())
    }

    /// Adds procedures: `cloud.register,cloud.changed=ping`. The error is the part that cannot
    /// be read.
    pub fn add_procedures(&mut self, list: &str) -> Result<(), String> {
        for part in parts(list) {
            let (name, role) = split(part);
            let is_callable =
                |role: &AliasRole| matches!(role, AliasRole::Register | AliasRole::Ping);
            let role =
                role.filter(is_callable).filter(|_| !name.contains(['/', ' '])).ok_or(part)?;
            self.procedures.push((name.to_owned(), role));
        }
        Ok(())
    }

    /// Returns these aliases together with the others.
    pub fn and(mut self, others: &CloudAliases) -> CloudAliases {
        self.paths.extend_from_slice(&others.paths);
        self.procedures.extend_from_slice(&others.procedures);
        self
    }

    /// Returns the role of a form at this path, if the path is listed.
    pub(crate) fn path(&self, path: &str) -> Option<AliasRole> {
        self.paths.iter().find(|(listed, _)| listed == path).map(|(_, role)| *role)
    }

    /// Returns the role of this procedure, if it is listed.
    pub(crate) fn procedure(&self, name: &str) -> Option<AliasRole> {
        let named = self.procedures.iter().find(|(listed, _)| listed.eq_ignore_ascii_case(name));
        named.map(|(_, role)| *role)
    }
}

fn parts(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|part| !part.is_empty())
}

/// Returns a name and its role; `None` if the role is unknown.
fn split(part: &str) -> (&str, Option<AliasRole>) {
    let (name, word) = part.split_once('=').unwrap_or((part, "register"));
    let role = match word.trim() {
        "register" => Some(AliasRole::Register),
        "ping" => Some(AliasRole::Ping),
        "cancel" => Some(AliasRole::Cancel),
        "call" => Some(AliasRole::Call),
        "hub" => Some(AliasRole::Hub),
        _ => None,
    };
    (name.trim(), role.filter(|_| !name.trim().is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_the_role_that_the_operator_lists() {
        let mut aliases = CloudAliases::default();
        aliases.add_paths("/register, /changed=ping,/rpc.php = call,/push=hub,").unwrap();
        aliases.add_procedures("cloud.subscribe,cloud.changed=ping").unwrap();
        assert_eq!(aliases.path("/register"), Some(AliasRole::Register));
        assert_eq!(aliases.path("/changed"), Some(AliasRole::Ping));
        assert_eq!(aliases.path("/rpc.php"), Some(AliasRole::Call));
        assert_eq!(aliases.path("/push"), Some(AliasRole::Hub));
        assert_eq!(aliases.path("/register/"), None);
        assert_eq!(aliases.procedure("Cloud.Subscribe"), Some(AliasRole::Register));
        assert_eq!(aliases.procedure("cloud.changed"), Some(AliasRole::Ping));
        assert_eq!(aliases.procedure("changed"), None);
    }

    #[test]
    fn what_cannot_be_read_is_the_error() {
        for bad in ["register", "/a=b", "=ping"] {
            assert_eq!(CloudAliases::default().add_paths(bad), Err(bad.to_owned()), "{bad}");
        }
        for bad in ["a/b", "a=call", "=ping"] {
            assert_eq!(CloudAliases::default().add_procedures(bad), Err(bad.to_owned()), "{bad}");
        }
    }
}
