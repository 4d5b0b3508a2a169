# A gateway for the tests of proxies, for tests/packages/run, which sources this file.

# Starts a gateway that others reach as $1, and sets $gateway to its address and
# $gateway_folder to its folder. It reaches this machine.
start_gateway() {
    local public_url=$1 folder port
    folder=$(mktemp -d -p "$work")
    port=$(random_port)
    gateway=127.0.0.1:$port
    gateway_folder=$folder
    # 127.0.0.2 alone may read the metrics, so that they show which address the gateway sees.
    env -i FEEDGATE_LISTEN="$gateway" FEEDGATE_DATABASE="sqlite:$folder/data" \
        FEEDGATE_PUBLIC_URL="$public_url" FEEDGATE_TRUSTED_PROXIES=127.0.0.1 \
        FEEDGATE_EGRESS_ALLOW_TOPIC_CIDRS=127.0.0.0/8 FEEDGATE_EGRESS_ALLOW_CALLBACK_CIDRS=127.0.0.0/8 \
        FEEDGATE_HOST_MIN_INTERVAL_MS=0 FEEDGATE_METRICS_NETWORKS=127.0.0.2 "$binary" serve >"$folder/log" 2>&1 &
    gateway_pid=$!
    pids+=("$gateway_pid")
    within_30_s "$binary" healthcheck --url "http://$gateway/" >/dev/null 2>&1
}

stop_gateway() {
    kill "$gateway_pid"
    wait "$gateway_pid" || true
}
