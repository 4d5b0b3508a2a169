//! Any bytes, normalized twice: what is written is its own normal form.
//!
//! A target of its own, because what it finds is a matter of taste far more often than
//! what `normalize` finds, and would keep that from going on.
#![no_main]

use feedgate_feed::Context;
use feedgate_feed::normalize;
use libfuzzer_sys::fuzz_target;
use url::Url;

fuzz_target!(|data: &[u8]| {
    let context = Context::new(Url::parse("http://a.test/").expect("it is a URL"));
    let Ok(once) = normalize(data, &context) else { return };
    let once = once.to_atom();
    let twice = normalize(once.as_bytes(), &context).expect("our own output is a feed");
    assert_eq!(twice.to_atom(), once);
});
