//! Results of deliveries as the columns of a statement that stores many of them.

use crate::engine::sql::Value;
use feedgate_core::delivery_health::AttemptResponse;
use feedgate_core::ports::DeliveryResult;

/// The newest numbers of a resource: `head`, `body_version`, `status_version` and
/// `announced_status_version`. They do not change while the resource is locked.
pub(super) type Newest = [i64; 4];

/// The columns of results: the subscription, its replays and the newest number when it was claimed, the
/// newest numbers now, two numbers and the response of each.
#[derive(Default)]
pub(super) struct ResultColumns {
    resources: Vec<i64>,
    ids: Vec<i64>,
    replays: Vec<i64>,
    /// 1: the numbers are versions of the body.
    counts_bodies: Vec<i64>,
    newest: Vec<i64>,
    newest_now: [Vec<i64>; 4],
    numbers: [Vec<i64>; 2],
    /// Status codes; 0 without a response, and [`NO_ATTEMPT`] without a request.
    codes: Vec<i64>,
    excerpts: Vec<String>,
}

/// Stands for the status code of a delivery that made no request.
const NO_ATTEMPT: i64 = -1;

/// Returns the status code of a delivery as it is stored.
pub(super) fn status_code(result: &DeliveryResult) -> i64 {
    let code = |response: &AttemptResponse| response.status.unwrap_or_default().into();
    result.response.as_ref().map_or(NO_ATTEMPT, code)
}

impl ResultColumns {
    /// Adds a result; `numbers` are the two columns that [`named`](Self::named) names.
    pub(super) fn push(&mut self, result: &DeliveryResult, newest: Newest, numbers: [i64; 2]) {
        self.resources.push(result.id.resource.0);
        self.ids.push(result.id.number);
        self.replays.push(result.replays);
        self.counts_bodies.push(result.counts_bodies.into());
        self.newest.push(result.newest.0);
        let response = result.response.as_ref();
        self.codes.push(status_code(result));
        self.excerpts.push(response.map(|response| response.excerpt.clone()).unwrap_or_default());
        for (column, number) in self.newest_now.iter_mut().zip(newest) {
            column.push(number);
        }
        for (column, number) in self.numbers.iter_mut().zip(numbers) {
            column.push(number);
        }
    }

    /// Returns the columns by their names, the two numbers as `first` and `second`.
    pub(super) fn named(
        self,
        first: &'static str,
        second: &'static str,
    ) -> [(&'static str, Value); 13] {
        let [one, two] = self.numbers;
        let [head, body_version, status_version, announced] = self.newest_now;
        [
            ("resource_id", Value::Ints(self.resources)),
            ("id", Value::Ints(self.ids)),
            ("replays_before", Value::Ints(self.replays)),
            ("counts_bodies", Value::Ints(self.counts_bodies)),
            ("newest", Value::Ints(self.newest)),
            ("head", Value::Ints(head)),
            ("body_version", Value::Ints(body_version)),
            ("status_version", Value::Ints(status_version)),
            ("announced", Value::Ints(announced)),
            (first, Value::Ints(one)),
            (second, Value::Ints(two)),
            ("code", Value::Ints(self.codes)),
            ("excerpt", Value::Texts(self.excerpts)),
        ]
    }
}
