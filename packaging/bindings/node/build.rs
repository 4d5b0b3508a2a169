//! Links the library as an addon of Node.js.

fn main() {
    napi_build::setup();
}
