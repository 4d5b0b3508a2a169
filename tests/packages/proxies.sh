# nginx and Caddy in front of a gateway, with the files of packaging/proxy, for tests/packages/run, which
# sources this file.

check_proxies() {
    # At the root of a host, and below a path of it that begins as paths of the gateway do.
    check_proxies_at /
    check_proxies_at /feeds/
}

check_proxies_at() {
    local port url
    port=$(random_port)
    url=https://localhost:$port${1%/}
    start_gateway "$url/"
    start_nginx "$port" "$1"
    check_proxy nginx "$url"
    stop_proxy
    start_caddy "$port" "$1"
    check_proxy Caddy "$url"
    stop_proxy
    stop_gateway
}

# Starts nginx with packaging/proxy/nginx.conf, at port $1, with the gateway at the path $2 and another
# certificate.
start_nginx() {
    local folder=$work/nginx
    mkdir -p "$folder"
    openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost \
        -addext subjectAltName=DNS:localhost -addext basicConstraints=critical,CA:FALSE -keyout "$folder/key.pem" -out "$folder/cert.pem" 2>/dev/null
    sed -e "s/listen 443 ssl/listen $1 ssl/" -e '/listen \[::\]/d' -e 's/feeds.example.org/localhost/' \
        -e "s|/etc/ssl/feedgate/fullchain.pem|$folder/cert.pem|" \
        -e "s|/etc/ssl/feedgate/privkey.pem|$folder/key.pem|" \
        -e "s|location / {|location $2 {|" -e "s|http://127.0.0.1:8080|http://$gateway|" packaging/proxy/nginx.conf >"$folder/site.conf"
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

# Starts Caddy with packaging/proxy/Caddyfile, at port $1, with the gateway at the path $2 and a certificate
# of its own.
start_caddy() {
    local folder=$work/caddy
    mkdir -p "$folder"
    printf '{\n\tadmin off\n\tskip_install_trust\n\tauto_https disable_redirects\n}\nimport %s\n' \
        "$PWD/packaging/proxy/Caddyfile" >"$folder/Caddyfile"
    say "Caddy $(caddy version)"
    export DOMAIN="https://localhost:$1" FOLDER=$2 UPSTREAM=$gateway XDG_DATA_HOME=$folder XDG_CONFIG_HOME=$folder
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
    local name="$1 at $2" url=$2
    check "$name is ready" within_30_s has_status 200 "$url/readyz"
    check "$name passes the address of the client along" \
        has_status 200 --interface 127.0.0.2 "$url/metrics"
    check "$name passes no other address along" has_status 403 "$url/metrics"
    check "$name does not pass along an address that the client claims to have" \
        has_status 403 -H 'X-Forwarded-For: 127.0.0.2' "$url/metrics"
    check "$name passes the host along" sh -c \
        "curl -s --cacert '$certificate' '$url/' -H 'Accept: text/html' | grep -qF '$url'"
    check "$name lets people sign in to the console" signs_in "$url"
    check "$name passes WebSub verifications and notifications on" subscribes "$url"
    curl -sN --cacert "$certificate" "$url/log/stream" >"$work/stream" 2>/dev/null &
    local stream=$!
    pids+=("$stream")
    check "$name passes the events of a stream on while it is open" within_30_s shows_event "$url" "$stream"
    kill "$stream" 2>/dev/null || true
    wait "$stream" || true
}

# Signs in to the console at $1, as a browser does, and opens a page.
signs_in() {
    local token jar=$work/cookies
    token=$(cut -d: -f2 <"$gateway_folder/data/admin-token")
    rm -f "$jar"
    has_status 303 -c "$jar" -d login=admin --data-urlencode "token=$token" "$1/console/sign-in" &&
        curl -s --cacert "$certificate" -b "$jar" "$1/console/feeds" | grep -qF 'Sign out'
}

# Subscribes to a feed at the hub of $1, changes the feed, and succeeds if its entry is received.
subscribes() {
    local folder port feed listening
    folder=$(mktemp -d -p "$work") port=$(random_port)
    feed=http://127.0.0.1:$port/feed.xml
    write_feed one >"$folder/feed.xml"
    python3 -m http.server --bind 127.0.0.1 --directory "$folder" "$port" >/dev/null 2>&1 &
    pids+=($!)
    within_30_s curl -sfo /dev/null "$feed" || return 1
    SSL_CERT_FILE=$certificate FEEDGATE_EGRESS_ALLOW_CALLBACK_CIDRS=127.0.0.0/8,::1 "$binary" listen --feed "$feed" --cloud "$1/hub" \
        --domain 127.0.0.1 >"$work/listen" 2>&1 &
    listening=$!
    pids+=("$listening")
    local code=0
    is_notified "$1" "$feed" "$folder" || code=1
    kill "$listening"
    wait "$listening" || true
    cat "$work/listen"
    return "$code"
}

# Succeeds if the subscription is verified, and a change of the feed $2 in the folder $3 is received.
is_notified() {
    within_30_s grep -q verified "$work/listen" || return 1
    write_feed two >"$3/feed.xml"
    has_status 204 -d hub.mode=publish --data-urlencode "hub.url=$2" "$1/hub" || return 1
    within_30_s grep -q 'Entry two' "$work/listen"
}

write_feed() {
    printf '<rss version="2.0"><channel><title>Tides</title><link>https://tides.test/</link>'
    printf '<description>d</description><item><title>Entry %s</title><guid>tag:tides.test:%s</guid></item>' "$1" "$1"
    printf '</channel></rss>\n'
}

# Causes an event, and succeeds if the stream $2, which is still open, shows one.
shows_event() {
    curl -s --cacert "$certificate" -o /dev/null -d url=https://feed.invalid/ "$1/ping"
    kill -0 "$2" && grep -q '^data:' "$work/stream"
}
