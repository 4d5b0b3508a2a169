# A Citus cluster for tests/citus/run, which sources this file and tests/lib/postgres.sh: a
# coordinator and two workers. The servers reach each other through sockets in a directory that
# only their owner can enter; only the coordinator has an address of its own.

coordinator_port=5432
declare -A worker_ports=([one]=5433 [two]=5434 [three]=5435)

# The programs of the newest PostgreSQL for which Citus is installed; empty if there is none.
citus_bin() {
    local dir library
    for dir in $(postgres_bins); do
        library=$dir/../lib
        [ ! -x "$dir/pg_config" ] || library=$("$dir/pg_config" --pkglibdir)
        if [ -f "$library/citus.so" ]; then
            echo "$dir"
            return
        fi
    done
}

on_coordinator() {
    as_superuser "$coordinator_port" -d feedgate "$@"
}

start_citus() {
    make_cluster_directory
    local node
    for node in coordinator one two; do
        init_cluster "$node"
    done
    start_coordinator
    for node in one two; do
        start_worker "$node"
    done
    on_coordinator -o /dev/null -c "select citus_set_coordinator_host('$cluster', $coordinator_port)"
    for node in one two; do
        add_worker "$node"
    done
    # The coordinator passes these on to the workers.
    on_coordinator -c 'create role feedgate login' \
        -c 'grant create on database feedgate to feedgate'
    # From now on, every schema lies on one of the workers as a whole.
    on_coordinator -c 'alter database feedgate set citus.enable_schema_based_sharding = on'
    export FEEDGATE_TEST_POSTGRES="postgres://feedgate@127.0.0.1:$coordinator_port/feedgate"
    export CITUS_SOCKETS=$cluster
    say "Citus $(on_coordinator -At -c "select extversion from pg_extension where extname = 'citus'")" \
        "on PostgreSQL $("$bin/postgres" --version | grep -o '[0-9.]*' | head -1) started in" \
        "$cluster: $FEEDGATE_TEST_POSTGRES"
}

# Settings of every server. A transaction across servers needs prepared transactions, and moving
# a schema needs logical replication.
citus_options() {
    echo "-c shared_preload_libraries=citus -c shared_buffers=64MB -c wal_level=logical \
        -c max_prepared_transactions=200 -c citus.node_conninfo=sslmode=disable \
        -c citus.local_hostname=$cluster -c citus.enable_statistics_collection=off $1"
}

start_coordinator() {
    local attempt
    for attempt in 1 2 3 4 5; do
        coordinator_port=${CITUS_PORT:-$(random_port)}
        start_cluster coordinator "$coordinator_port" \
            "$(citus_options '-c listen_addresses=127.0.0.1 -c max_connections=300')" &&
            { create_database coordinator "$coordinator_port"; return; }
    done
    say "the coordinator did not start:"
    as_owner cat "$cluster/coordinator.log"
    exit 1
}

start_worker() {
    local options
    options=$(citus_options '-c listen_addresses= -c max_connections=600')
    start_cluster "$1" "${worker_ports[$1]}" "$options" || {
        say "worker $1 did not start:"
        as_owner cat "$cluster/$1.log"
        exit 1
    }
    [ "${2:-}" = again ] || create_database "$1" "${worker_ports[$1]}"
}

create_database() {
    as_superuser "$2" -d postgres -c 'create database feedgate'
    as_superuser "$2" -d feedgate -c 'create extension citus'
}

add_worker() {
    on_coordinator -o /dev/null -c "select citus_add_node('$cluster', ${worker_ports[$1]})"
}

# Restarts a worker: its connections are cut off, and new ones refused until it is back.
restart_worker() {
    say "restarting worker $1"
    as_owner "$bin/pg_ctl" -D "$cluster/$1" -m fast -w stop >/dev/null
    start_worker "$1" again
    say "worker $1 is back"
}
