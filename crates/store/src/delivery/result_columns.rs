//! Results of deliveries as the columns of a statement that stores many of them.

use crate::engine::sql::Value;
use feedgate_core::delivery_health::AttemptResponse;
use feedgate_core::store::DeliveryResult;
use feedgate_core::subscription::SubscriptionId;

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

/// Returns subscriptions as columns for `{rows}`: the `resource_id`, `first_id` and `last_id` of each range of
/// consecutive ids, which is found with one search of the index.
pub(super) fn range_columns(mut ids: Vec<SubscriptionId>) -> [(&'static str, Value); 3] {
    ids.sort_unstable();
    let is_next = |one: &SubscriptionId, next: &SubscriptionId| {
        one.resource == next.resource && next.number - one.number <= 1
    };
    let ranges: Vec<_> = ids.chunk_by(is_next).collect();
    let numbers = |number: fn(&[SubscriptionId]) -> i64| {
        Value::Ints(ranges.iter().map(|range| number(range)).collect())
    };
    [
        ("resource_id", numbers(|range| range[0].resource.0)),
        ("first_id", numbers(|range| range[0].number)),
        ("last_id", numbers(|range| range[range.len() - 1].number)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedgate_core::resource::ResourceId;

    #[test]
    fn consecutive_ids_are_a_range() {
        for (numbers, firsts, lasts) in [
            (vec![], vec![], vec![]),
            (vec![7], vec![7], vec![7]),
            (vec![15, 7, 8, 9, 12, 14], vec![7, 12, 14], vec![9, 12, 15]),
        ] {
            let ids = numbers.iter().flat_map(|number| {
                [2, 1].map(|resource| SubscriptionId {
                    resource: ResourceId(resource),
                    number: *number,
                })
            });
            let [(_, resources), (_, first_ids), (_, last_ids)] = range_columns(ids.collect());
            let ones_and_twos = [vec![1; firsts.len()], vec![2; firsts.len()]].concat();
            assert_eq!(resources, Value::Ints(ones_and_twos));
            assert_eq!(first_ids, Value::Ints([firsts.clone(), firsts].concat()));
            assert_eq!(last_ids, Value::Ints([lasts.clone(), lasts].concat()));
        }
    }
}
