//! Where a fetch found its resource.

use url::Url;

/// The location of a resource, judged by the redirects to the response (rule P19).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResourceLocation {
    /// Unknown: there was no response.
    Unknown,
    /// At the requested address.
    Here,
    /// Behind a temporary redirect.
    Elsewhere,
    /// At another address, permanently.
    Moved {
        /// The end of the leading permanent redirects.
        to: Url,
        /// Whether all redirects were permanent, so that the response came from this address.
        for_good: bool,
    },
}
