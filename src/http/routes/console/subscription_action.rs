//! What can be done with a subscription, with the words of the buttons and the scopes that a token needs.

use feedgate_core::account::Scope;
use feedgate_core::store::ListedSubscription;
use feedgate_protocol::Protocol;

/// What can be done with a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Send nothing until deliveries are resumed.
    Pause,
    /// Send what was held back, and go on.
    Resume,
    /// Do not wait for the time of the next retry.
    Retry,
    /// Send a notification that reports nothing.
    Test,
    /// Send entries again.
    Replay,
    /// Sign with a new secret.
    RotateSecret,
    /// End the subscription.
    End,
}

impl Action {
    const ALL: [Action; 7] = [
        Action::Pause,
        Action::Resume,
        Action::Retry,
        Action::Test,
        Action::Replay,
        Action::RotateSecret,
        Action::End,
    ];

    /// The word in forms.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Action::Pause => "pause",
            Action::Resume => "resume",
            Action::Retry => "retry",
            Action::Test => "test",
            Action::Replay => "replay",
            Action::RotateSecret => "rotate-secret",
            Action::End => "end",
        }
    }

    /// The text of the button.
    pub(super) fn label(self) -> &'static str {
        match self {
            Action::Pause => "Pause",
            Action::Resume => "Resume",
            Action::Retry => "Retry now",
            Action::Test => "Send a test",
            Action::Replay => "Replay",
            Action::RotateSecret => "Rotate the secret",
            Action::End => "End",
        }
    }

    /// Parses the word.
    pub(super) fn from_word(word: &str) -> Option<Action> {
        Action::ALL.into_iter().find(|action| action.as_str() == word)
    }

    /// Returns whether the action can be carried out for several subscriptions at once.
    pub(super) fn is_for_many(self) -> bool {
        matches!(self, Action::Pause | Action::Resume | Action::Retry | Action::End)
    }

    /// The scope that a token needs for it.
    pub(super) fn scope(self) -> Scope {
        match self {
            Action::End => Scope::Unsubscribe,
            Action::Replay => Scope::Retrieve,
            _ => Scope::Subscribe,
        }
    }

    /// Returns whether the action would do something with a subscription in its state.
    pub(super) fn is_possible(self, listed: &ListedSubscription) -> bool {
        let delivery = &listed.delivery;
        let is_paused = delivery.paused_at.is_some();
        match self {
            Action::Pause | Action::Replay => !is_paused,
            Action::Resume => is_paused,
            Action::Retry => !is_paused && delivery.due_at.is_some(),
            Action::RotateSecret => has_changeable_secret(listed),
            Action::Test | Action::End => true,
        }
    }
}

/// Returns whether the secret of a subscription can be changed in the console.
pub(super) fn has_changeable_secret(listed: &ListedSubscription) -> bool {
    listed.subscription.account.is_some() && listed.subscription.protocol == Protocol::WebSub
}
