# docker build -t feedgate . && docker run -p 8080:8080 -v feedgate:/data feedgate
#
# With BuildKit or buildah: the registry of Cargo and what was compiled are kept in caches between builds.
FROM rust:1.95-slim-bookworm AS build
# Versions of Debian's packages are not fixed: its archive keeps only the newest one of a release.
# hadolint ignore=DL3008
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY Cargo.toml Cargo.lock ./
COPY migrations migrations
COPY schemas schemas
COPY docs/errors.md docs/quickstart.md docs/
COPY docs/api/signatures.md docs/api/
COPY fixtures/demo fixtures/demo
COPY crates crates
COPY src src
RUN --mount=type=cache,target=/usr/local/cargo/registry --mount=type=cache,target=/src/target \
    cargo build --release --locked --bin feedgate && mkdir /out && cp target/release/feedgate /out/
WORKDIR /out
# Debug information is five sixths of the program: it stays in the build stage, in feedgate.debug.
RUN objcopy --only-keep-debug feedgate feedgate.debug \
    && strip feedgate && objcopy --add-gnu-debuglink=feedgate.debug feedgate

FROM debian:bookworm-slim
ARG VERSION=0.1.0
LABEL org.opencontainers.image.title="feedgate" \
    org.opencontainers.image.description="A gateway for feeds: WebSub, rssCloud, webhooks and archives" \
    org.opencontainers.image.version="$VERSION" \
    org.opencontainers.image.licenses="MIT OR Apache-2.0" \
    org.opencontainers.image.base.name="docker.io/library/debian:bookworm-slim"
# hadolint ignore=DL3008
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 --home-dir /data --create-home feedgate
COPY --from=build /out/feedgate /usr/local/bin/feedgate
USER 10001
WORKDIR /data
VOLUME /data
ENV FEEDGATE_LISTEN=0.0.0.0:8080 FEEDGATE_DATABASE=sqlite:/data
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s CMD ["feedgate", "healthcheck"]
ENTRYPOINT ["feedgate"]
CMD ["serve"]
