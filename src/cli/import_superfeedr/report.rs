//! What the command prints: a line for each subscription or feed that needs a look, and a summary.

use serde_json::{Map, Value, json};

use super::super::print_line;
use super::journal::SubscriptionKey;

/// Prints results, as sentences or as lines of JSON.
pub(super) struct ResultPrinter {
    is_json: bool,
    exceptions: usize,
}

impl ResultPrinter {
    /// Prints sentences, or with `is_json` objects.
    pub(super) fn new(is_json: bool) -> ResultPrinter {
        ResultPrinter { is_json, exceptions: 0 }
    }

    /// Prints what was not done for a subscription, and counts it.
    pub(super) fn print_exception(&mut self, result: &str, key: &SubscriptionKey, reason: &str) {
        self.exceptions += 1;
        self.print_subscription(result, key, reason);
    }

    /// Prints a remark on a subscription.
    pub(super) fn print_subscription(&self, result: &str, key: &SubscriptionKey, reason: &str) {
        let SubscriptionKey { topic, callback } = key;
        let fields =
            json!({ "result": result, "topic": topic, "callback": callback, "reason": reason });
        self.print(fields, || format!("{result}: {topic} for {callback}: {reason}"));
    }

    /// Prints what a feed differs in, and counts it.
    pub(super) fn print_feed(
        &mut self,
        result: &str,
        topic: &str,
        mut fields: Value,
        reason: &str,
    ) {
        self.exceptions += 1;
        fields["result"] = result.into();
        fields["topic"] = topic.into();
        fields["reason"] = reason.into();
        self.print(fields, || format!("{result}: {topic}: {reason}"));
    }

    /// Prints the summary, which is the last line: how many of each there are.
    pub(super) fn print_summary(&self, result: &str, counts: &[(&str, usize)]) {
        let mut fields = Map::from_iter([("result".to_owned(), Value::from(result))]);
        fields.extend(counts.iter().map(|(name, count)| ((*name).to_owned(), (*count).into())));
        let texts: Vec<String> = counts
            .iter()
            .map(|(name, count)| format!("{count} {}", name.replace('_', " ")))
            .collect();
        self.print(fields.into(), || format!("{result}: {}", texts.join(", ")));
    }

    /// Whether anything was not done, or differs.
    pub(super) fn has_exceptions(&self) -> bool {
        self.exceptions > 0
    }

    fn print(&self, fields: Value, sentence: impl FnOnce() -> String) {
        print_line(if self.is_json { fields.to_string() } else { sentence() });
    }
}
