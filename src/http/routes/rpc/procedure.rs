//! The procedures, by the names that clients call them.
//!
//! Publishers chose the names of their registration procedures freely (`registerProcedure` of a
//! `<cloud>` element), so a procedure is identified by the last part of its name.

use crate::http::routes::rsscloud::aliases::AliasRole;
use crate::http::state::Gateway;

/// A procedure that can be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Procedure {
    Hello,
    PleaseNotify,
    Ping,
    WeblogPing,
    WeblogExtendedPing,
    ListMethods,
    MethodHelp,
    MethodSignature,
    Multicall,
    SaveRss,
}

impl Procedure {
    /// Returns the procedure that the operator lists under this name, or else the one that the name
    /// says.
    pub(super) fn find(gateway: &Gateway, method: &str) -> Option<Procedure> {
        match gateway.settings.cloud_aliases.procedure(method) {
            Some(AliasRole::Register) => Some(Procedure::PleaseNotify),
            Some(AliasRole::Ping) => Some(Procedure::Ping),
            Some(AliasRole::Cancel | AliasRole::Call | AliasRole::Hub) | None => {
                Procedure::from_name(method)
            }
        }
    }

    /// Reads a name such as `rssCloud.pleaseNotify`, `xmlStorageSystem.rssPleaseNotify` or
    /// `myCloud.ping`.
    pub(super) fn from_name(method: &str) -> Option<Procedure> {
        let (family, name) = method.rsplit_once('.').unwrap_or(("", method));
        let is_weblogs = family.eq_ignore_ascii_case("weblogUpdates");
        Some(match name.to_ascii_lowercase().as_str() {
            "ping" if is_weblogs => Procedure::WeblogPing,
            "rssupdate" => Procedure::WeblogPing, // without a family at rssrpc.weblogs.com
            "extendedping" => Procedure::WeblogExtendedPing,
            "ping" => Procedure::Ping,
            "pleasenotify" | "rsspleasenotify" => Procedure::PleaseNotify,
            "saverss" => Procedure::SaveRss,
            "hello" => Procedure::Hello,
            "listmethods" => Procedure::ListMethods,
            "methodhelp" => Procedure::MethodHelp,
            "methodsignature" => Procedure::MethodSignature,
            "multicall" => Procedure::Multicall,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn procedures_are_known_by_any_family_name() {
        #[rustfmt::skip]
        let cases = [
            ("rssCloud.hello",                   Some(Procedure::Hello)),
            ("rssCloud.pleaseNotify",            Some(Procedure::PleaseNotify)),
            ("xmlStorageSystem.rssPleaseNotify", Some(Procedure::PleaseNotify)),
            ("myCloud.rssPleaseNotify",          Some(Procedure::PleaseNotify)),
            ("pleaseNotify",                     Some(Procedure::PleaseNotify)),
            ("rssCloud.ping",                    Some(Procedure::Ping)),
            ("rssCloud.saveRss",                 Some(Procedure::SaveRss)),
            ("xmlStorageSystem.saveRss",         Some(Procedure::SaveRss)),
            ("weblogUpdates.ping",               Some(Procedure::WeblogPing)),
            ("weblogUpdates.extendedPing",       Some(Procedure::WeblogExtendedPing)),
            ("rssUpdate",                        Some(Procedure::WeblogPing)),
            ("system.listMethods",               Some(Procedure::ListMethods)),
            ("system.multicall",                 Some(Procedure::Multicall)),
            ("foo.bar",                          None),
        ];
        for (method, want) in cases {
            assert_eq!(Procedure::from_name(method), want, "{method}");
        }
    }
}
