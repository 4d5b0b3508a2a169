//! What callers without an account may do, as the operator decides (`FEEDGATE_ANONYMOUS`).

use http::StatusCode;

use crate::http::kit::rejection::Rejection;
use feedgate_core::account::Scope;

/// Something that callers without an account may do if the operator allows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Permission {
    /// Subscribe and unsubscribe at the WebSub hub.
    Hub,
    /// Register and cancel rssCloud handlers.
    RssCloud,
    /// Report that a feed or a site has changed.
    Pings,
    /// Read the feeds that are stored here.
    Storage,
    /// See what is watched and what has happened: lists, statistics, archives, changes and the log.
    Views,
    /// See what is at an address, on the page `/try`.
    Try,
    /// Name callbacks in the private networks that the operator allows for callbacks.
    InnerAddresses,
}

impl Permission {
    const ALL: [Permission; 7] = [
        Permission::Hub,
        Permission::RssCloud,
        Permission::Pings,
        Permission::Storage,
        Permission::Views,
        Permission::Try,
        Permission::InnerAddresses,
    ];

    /// Returns the word in the setting.
    fn as_str(self) -> &'static str {
        match self {
            Permission::Hub => "hub",
            Permission::RssCloud => "rsscloud",
            Permission::Pings => "pings",
            Permission::Storage => "storage",
            Permission::Views => "views",
            Permission::Try => "try",
            Permission::InnerAddresses => "inner-addresses",
        }
    }

    /// Returns the scope that the token of an account needs where strangers lack the permission.
    pub(crate) fn scope(self) -> Scope {
        match self {
            Permission::Hub
            | Permission::RssCloud
            | Permission::Try
            | Permission::InnerAddresses => Scope::Subscribe,
            Permission::Pings => Scope::Publish,
            Permission::Storage => Scope::Retrieve,
            Permission::Views => Scope::List,
        }
    }

    /// Returns the rejection of a caller without an account. Browsers ask for a login only where
    /// they show a page; clients of the protocols could not answer.
    pub(crate) fn rejection(self) -> Rejection {
        let (status, what) = match self {
            Permission::Hub => (StatusCode::FORBIDDEN, "subscriptions at the hub"),
            Permission::RssCloud => (StatusCode::FORBIDDEN, "rssCloud registrations"),
            Permission::Pings => (StatusCode::FORBIDDEN, "pings"),
            Permission::Storage => (StatusCode::UNAUTHORIZED, "readers of stored feeds"),
            Permission::Views => (StatusCode::UNAUTHORIZED, "readers of its views"),
            Permission::Try => (StatusCode::NOT_FOUND, "previews of addresses"),
            Permission::InnerAddresses => (StatusCode::FORBIDDEN, "callbacks in private networks"),
        };
        let reason = format!(
            "This gateway accepts {what} from accounts only: please authenticate with your login \
             and a token, by HTTP Basic."
        );
        Rejection::new(status, reason).with_code("account_required")
    }
}

/// What callers without an account may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnonymousAccess([bool; Permission::ALL.len()]);

impl AnonymousAccess {
    /// Reads a list such as `hub,pings`, or `none`. The error is the part that cannot be read.
    pub fn parse(list: &str) -> Result<AnonymousAccess, String> {
        let mut open = [false; Permission::ALL.len()];
        let words: Vec<&str> =
            list.split(',').map(str::trim).filter(|word| !word.is_empty()).collect();
        if words == ["none"] {
            return Ok(AnonymousAccess(open));
        }
        for word in words {
            let permission =
                Permission::ALL.iter().position(|permission| permission.as_str() == word);
            open[permission.ok_or(word)?] = true;
        }
        Ok(AnonymousAccess(open))
    }

    /// Returns whether callers without an account may do this.
    pub(crate) fn allows(self, permission: Permission) -> bool {
        self.0[permission as usize]
    }

    /// Returns whether callers without an account may name callbacks in private networks.
    pub(crate) fn reaches_inner_callbacks(self) -> bool {
        self.allows(Permission::InnerAddresses)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h05_the_setting_names_what_is_open() {
        #[rustfmt::skip]
        let cases: [(&str, Result<&[Permission], &str>); 6] = [
            ("hub,rsscloud,pings,storage,views,try", Ok(&[Permission::Hub, Permission::RssCloud, Permission::Pings, Permission::Storage, Permission::Views, Permission::Try])),
            ("none",                  Ok(&[])),
            (" views , hub,",         Ok(&[Permission::Hub, Permission::Views])),
            ("inner-addresses",       Ok(&[Permission::InnerAddresses])),
            ("hub,all",               Err("all")),
            ("hub,none",              Err("none")),
        ];
        for (list, want) in cases {
            let access = AnonymousAccess::parse(list);
            let open = access.map(|access| {
                Permission::ALL
                    .into_iter()
                    .filter(|permission| access.allows(*permission))
                    .collect::<Vec<_>>()
            });
            assert_eq!(open, want.map(<[Permission]>::to_vec).map_err(str::to_owned), "{list}");
        }
    }
}
