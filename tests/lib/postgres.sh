# PostgreSQL clusters for the scripts in tests/, which source this file. A cluster is a folder
# `data`, a log, and a socket in a temporary directory that only its owner can enter.
#
# Variables: `cluster` is that directory, `bin` the folder of PostgreSQL's programs, and `owner`
# the user who runs them.

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# The folders of the installed PostgreSQL programs, the newest first.
postgres_bins() {
    local dir
    for dir in $(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -rV); do
        [ -x "$dir/initdb" ] && [ -x "$dir/postgres" ] && echo "$dir"
    done
    if command -v initdb >/dev/null && command -v pg_ctl >/dev/null; then
        dirname "$(readlink -f "$(command -v initdb)")"
    fi
}

# PostgreSQL refuses to run as root, so root lends it to another user.
as_owner() {
    if [ "$(id -u)" = 0 ]; then (cd / && runuser -u "$owner" -- "$@"); else "$@"; fi
}

make_cluster_directory() {
    owner=$(id -un)
    if [ "$(id -u)" = 0 ]; then
        owner=nobody
        id postgres >/dev/null 2>&1 && owner=postgres
    fi
    cluster=$(mktemp -d "${TMPDIR:-/tmp}/feedgate-tests.XXXXXX")
    [ "$(id -u)" != 0 ] || chown "$owner" "$cluster"
}

# Creates the cluster in $cluster/$1. Its only superuser is `postgres`.
init_cluster() {
    local log
    log=$(mktemp)
    as_owner "$bin/initdb" -D "$cluster/$1" -U postgres -A trust -E UTF8 --locale=C \
        --no-sync >"$log" 2>&1 || { cat "$log"; rm -f "$log"; exit 1; }
    rm -f "$log"

    # Other users of this machine can connect as an unprivileged role only; the superuser is
    # behind a socket in a directory that only its owner can enter.
    printf '%s\n' 'local all all trust' 'host all feedgate 127.0.0.1/32 trust' |
        as_owner tee "$cluster/$1/pg_hba.conf" >/dev/null
}

# Starts the cluster in $cluster/$1 on port $2 with the options $3.
start_cluster() {
    # Tests kill feedgate, never the server, so the server need not wait for the disk.
    as_owner "$bin/pg_ctl" -D "$cluster/$1" -w -t 60 -l "$cluster/$1.log" -o \
        "-k $cluster -p $2 -c fsync=off -c full_page_writes=off $3" start >/dev/null 2>&1
}

# Runs psql as the superuser on the cluster with port $1.
as_superuser() {
    local port=$1
    shift
    as_owner "$bin/psql" -q -v ON_ERROR_STOP=1 -h "$cluster" -p "$port" -U postgres "$@"
}

# Prints a port that is probably free, below the ports that the kernel gives to clients.
random_port() {
    echo $((20000 + RANDOM % 12000))
}

# Stops all clusters in $cluster, and removes the directory.
remove_clusters() {
    [ -n "${cluster:-}" ] || return 0
    local data
    for data in "$cluster"/*/; do
        as_owner "$bin/pg_ctl" -D "$data" -m immediate -w stop >/dev/null 2>&1 || true
    done
    rm -rf "$cluster"
    say "PostgreSQL stopped and removed"
    cluster=
}
