//! What `system.listMethods`, `system.methodHelp` and `system.methodSignature` say of the procedures.

use super::procedure::Procedure;

/// The description of a procedure.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProcedureDescription {
    procedure: Procedure,
    /// The name.
    pub(super) name: &'static str,
    /// The text for `system.methodHelp`.
    pub(super) help: &'static str,
    /// The ways to call it: for each, the type of the result and those of the parameters.
    pub(super) signatures: &'static [&'static str],
}

/// All procedures.
const DESCRIPTIONS: [ProcedureDescription; 10] = [
    ProcedureDescription {
        procedure: Procedure::Hello,
        name: "rssCloud.hello",
        help: "Returns true: this is an rssCloud server.",
        signatures: &["boolean"],
    },
    ProcedureDescription {
        procedure: Procedure::PleaseNotify,
        name: "rssCloud.pleaseNotify",
        help: "Registers a handler for 25 hours, which is notified when one of the feeds changes: \
               notifyProcedure, port, path, protocol, the URLs of the feeds, and optionally the \
               domain of the handler.",
        signatures: &[
            "boolean string int string string array",
            "boolean string int string string array string",
        ],
    },
    ProcedureDescription {
        procedure: Procedure::Ping,
        name: "rssCloud.ping",
        help: "Reports that the feed at this URL has changed.",
        signatures: &["boolean string"],
    },
    ProcedureDescription {
        procedure: Procedure::SaveRss,
        name: "rssCloud.saveRss",
        help: "Saves a feed and returns its URL: login, password or token, and the text of the feed.",
        signatures: &["string string string string", "string string string base64"],
    },
    ProcedureDescription {
        procedure: Procedure::WeblogPing,
        name: "weblogUpdates.ping",
        help: "Reports that a weblog has changed: its name, its URL, and optionally the page that \
               changed and a category.",
        signatures: &[
            "struct string string",
            "struct string string string",
            "struct string string string string",
        ],
    },
    ProcedureDescription {
        procedure: Procedure::WeblogExtendedPing,
        name: "weblogUpdates.extendedPing",
        help: "Reports that a weblog has changed: its name, its URL, the page that changed, the URL \
               of its feed, and optionally tags; or its name, its URL and that of its feed.",
        signatures: &[
            "struct string string string",
            "struct string string string string",
            "struct string string string string string",
        ],
    },
    ProcedureDescription {
        procedure: Procedure::ListMethods,
        name: "system.listMethods",
        help: "Returns the names of all procedures.",
        signatures: &["array"],
    },
    ProcedureDescription {
        procedure: Procedure::MethodHelp,
        name: "system.methodHelp",
        help: "Returns the description of the procedure with this name.",
        signatures: &["string string"],
    },
    ProcedureDescription {
        procedure: Procedure::MethodSignature,
        name: "system.methodSignature",
        help: "Returns the ways to call the procedure with this name: for each, the type of the \
               result and those of the parameters.",
        signatures: &["array string"],
    },
    ProcedureDescription {
        procedure: Procedure::Multicall,
        name: "system.multicall",
        help: "Carries out several calls, each a struct with methodName and params. Returns for each \
               an array with its result, or a struct with faultCode and faultString.",
        signatures: &["array array"],
    },
];

impl ProcedureDescription {
    /// Returns the names of all procedures.
    pub(super) fn names() -> [&'static str; DESCRIPTIONS.len()] {
        DESCRIPTIONS.map(|described| described.name)
    }

    /// Returns the description of a procedure.
    pub(super) fn find(procedure: Procedure) -> Option<&'static ProcedureDescription> {
        DESCRIPTIONS.iter().find(|described| described.procedure == procedure)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_procedure_is_described_under_the_name_that_it_is_found_by() {
        for described in DESCRIPTIONS {
            assert_eq!(Procedure::from_name(described.name), Some(described.procedure));
        }
    }
}
