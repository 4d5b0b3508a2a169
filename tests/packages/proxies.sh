# nginx and Caddy in front of a gateway, with the files of packaging/proxy, for tests/packages/run, which
# sources this file.

check_proxies() {
    local port
    port=$(random_port)
    start_gateway "https://localhost:$port/"
    start_nginx "$port"
    check_proxy nginx "https://localhost:$port"
    stop_proxy
    start_caddy "$port"
    check_proxy Caddy "https://localhost:$port"
    stop_proxy
    stop_gateway
}

# Starts nginx with packaging/proxy/nginx.conf, at another port and with another certificate.
start_nginx() {
    local folder=$work/nginx
    mkdir -p "$folder"
    openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost \
        -addext subjectAltName=DNS:localhost -keyout "$folder/key.pem" -out "$folder/cert.pem" 2>/dev/null
    sed -e "s/listen 443 ssl/listen $1 ssl/" -e '/listen \[::\]/d' -e 's/feeds.example.org/localhost/' \
        -e "s|/etc/ssl/feedgate/fullchain.pem|$folder/cert.pem|" \
        -e "s|/etc/ssl/feedgate/privkey.pem|$folder/key.pem|" \
        -e "s|http://127.0.0.1:8080|http://$gateway|" packaging/proxy/nginx.conf >"$folder/site.conf"
    cat >"$folder/nginx.conf" <<CONF
daemon off;
pid $folder/pid;
error_log $folder/error.log;
events {}
http {
    access_log off;
    client_body_temp_path $folder/body;
    proxy_temp_path $folder/proxy;
    fastcgi_temp_path $folder/fastcgi;
    uwsgi_temp_path $folder/uwsgi;
    scgi_temp_path $folder/scgi;
    include $folder/site.conf;
}
CONF
    say "$(nginx -v 2>&1)"
    check "nginx accepts its settings" nginx -t -q -c "$folder/nginx.conf"
    nginx -c "$folder/nginx.conf" &
    proxy_pid=$!
    pids+=("$proxy_pid")
    certificate=$folder/cert.pem
}

# Starts Caddy with packaging/proxy/Caddyfile, at another port and with a certificate of its own.
start_caddy() {
    local folder=$work/caddy
    mkdir -p "$folder"
    printf '{\n\tadmin off\n\tskip_install_trust\n\tauto_https disable_redirects\n}\nimport %s\n' \
        "$PWD/packaging/proxy/Caddyfile" >"$folder/Caddyfile"
    say "Caddy $(caddy version)"
    export DOMAIN="https://localhost:$1" UPSTREAM=$gateway XDG_DATA_HOME=$folder XDG_CONFIG_HOME=$folder
    check "Caddy accepts its settings" caddy validate --adapter caddyfile --config "$folder/Caddyfile"
    caddy run --adapter caddyfile --config "$folder/Caddyfile" 2>"$folder/log" &
    proxy_pid=$!
    pids+=("$proxy_pid")
    certificate=$folder/caddy/pki/authorities/local/root.crt
}

stop_proxy() {
    kill "$proxy_pid"
    wait "$proxy_pid" || true
}

# Requests $2 with curl's other arguments; prints the status code.
status() {
    curl -s --cacert "$certificate" -o /dev/null -w '%{http_code}' "$@"
}

has_status() {
    local want=$1 got
    shift
    got=$(status "$@")
    echo "status $got"
    [ "$got" = "$want" ]
}

# Checks the proxy $1, which is at $2.
check_proxy() {
    local name=$1 url=$2
    check "$name is ready" within_30_s has_status 200 "$url/readyz"
    check "$name passes the address of the client along" \
        has_status 200 --interface 127.0.0.2 "$url/metrics"
    check "$name passes no other address along" has_status 403 "$url/metrics"
    check "$name does not pass along an address that the client claims to have" \
        has_status 403 -H 'X-Forwarded-For: 127.0.0.2' "$url/metrics"
    check "$name passes the host along" sh -c \
        "curl -s --cacert '$certificate' '$url/' -H 'Accept: text/html' | grep -qF '$url'"
    curl -sN --cacert "$certificate" "$url/log/stream" >"$work/stream" 2>/dev/null &
    local stream=$!
    pids+=("$stream")
    check "$name passes the events of a stream on while it is open" within_30_s shows_event "$url" "$stream"
    kill "$stream" 2>/dev/null || true
    wait "$stream" || true
}

# Causes an event, and succeeds if the stream $2, which is still open, shows one.
shows_event() {
    curl -s --cacert "$certificate" -o /dev/null -d url=https://feed.invalid/ "$1/ping"
    kill -0 "$2" && grep -q '^data:' "$work/stream"
}
