# docker build -t feedgate . && docker run -p 8080:8080 -v feedgate:/data feedgate
FROM rust:1.95-slim-bookworm AS build
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY Cargo.toml Cargo.lock ./
COPY crates/feed/Cargo.toml crates/feed/
COPY crates/protocol/Cargo.toml crates/protocol/
COPY crates/core/Cargo.toml crates/core/
COPY crates/store/Cargo.toml crates/store/
# Dependencies first: they change less often than the source code.
RUN mkdir -p src crates/feed/src crates/protocol/src crates/core/src crates/store/src \
    && echo 'fn main() {}' > src/main.rs \
    && touch src/lib.rs crates/feed/src/lib.rs crates/protocol/src/lib.rs crates/core/src/lib.rs \
        crates/store/src/lib.rs \
    && cargo build --release --locked --bin feedgate && rm -rf src crates/*/src
COPY migrations migrations
COPY schemas schemas
COPY fixtures/demo fixtures/demo
COPY crates crates
COPY src src
# Debug information is five sixths of the program: it stays in the build stage, in feedgate.debug.
RUN touch src/main.rs src/lib.rs crates/*/src/lib.rs && cargo build --release --locked --bin feedgate \
    && cd target/release && objcopy --only-keep-debug feedgate feedgate.debug \
    && strip feedgate && objcopy --add-gnu-debuglink=feedgate.debug feedgate

FROM debian:bookworm-slim
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 --home-dir /data --create-home feedgate
COPY --from=build /src/target/release/feedgate /usr/local/bin/feedgate
USER feedgate
WORKDIR /data
VOLUME /data
ENV FEEDGATE_LISTEN=0.0.0.0:8080 FEEDGATE_DATABASE=sqlite:/data
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s CMD ["feedgate", "healthcheck"]
ENTRYPOINT ["feedgate"]
CMD ["serve"]
