//! The publisher of the demo: serves the sample feeds, and adds entries to them.

use std::sync::{Arc, Mutex};

use http::header::{CONTENT_TYPE, ETAG};
use http::{Response, StatusCode};
use url::Url;
use warp::Filter;
use warp::filters::BoxedFilter;

use super::samples::{SAMPLES, Sample};

/// The numbers of the entries published so far, for each sample in its order.
type Published = Arc<Mutex<[Vec<u32>; SAMPLES.len()]>>;

/// What the publisher has published.
#[derive(Clone, Default)]
pub(super) struct Publisher {
    published: Published,
}

impl Publisher {
    /// Adds entry `number` on top of a sample.
    pub(super) fn publish(&self, sample: usize, number: u32) {
        self.lock()[sample].push(number);
    }

    /// Serves every sample under its name.
    pub(super) fn routes(&self) -> BoxedFilter<(warp::reply::Response,)> {
        let publisher = self.clone();
        warp::path::param()
            .and(warp::path::end())
            .and(warp::get())
            .and(warp::header::optional("if-none-match"))
            .map(move |name: String, known: Option<String>| {
                publisher.respond(&name, known.as_deref())
            })
            .boxed()
    }

    fn respond(&self, name: &str, known: Option<&str>) -> warp::reply::Response {
        let Some(at) = SAMPLES.iter().position(|sample| sample.name == name) else {
            return reply(StatusCode::NOT_FOUND, &[], Vec::new());
        };
        let numbers = self.lock()[at].clone();
        let etag = format!("\"{}\"", numbers.len());
        let sample = &SAMPLES[at];
        if known == Some(etag.as_str()) {
            return reply(StatusCode::NOT_MODIFIED, &[(ETAG.as_str(), &etag)], Vec::new());
        }
        let headers =
            [(ETAG.as_str(), etag.as_str()), (CONTENT_TYPE.as_str(), sample.content_type)];
        reply(StatusCode::OK, &headers, sample.with(&numbers))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, [Vec<u32>; SAMPLES.len()]> {
        self.published.lock().expect("nobody panics while holding it")
    }
}

/// Where a sample is on the publisher's server.
pub(super) fn topic(publisher: &Url, sample: &Sample) -> String {
    format!("{publisher}{}", sample.name)
}

fn reply(status: StatusCode, headers: &[(&str, &str)], body: Vec<u8>) -> warp::reply::Response {
    let mut respond = Response::builder().status(status);
    for (name, value) in headers {
        respond = respond.header(*name, *value);
    }
    respond.body(body.into()).expect("names and values are ours")
}
