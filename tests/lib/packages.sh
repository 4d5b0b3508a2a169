# Packages of PyPI and npm for the tests, for tests/run, which sources this file. They are installed
# once, outside the repository, in the versions that tests/it/clients names.
#
# Exports FEEDGATE_TEST_PYTHON, a Python that has them, and FEEDGATE_TEST_NODE_MODULES, their folder.

# Prints the folder for what the file $1 names: another one for each content of that file.
package_folder() {
    local cache=${XDG_CACHE_HOME:-$HOME/.cache}/feedgate-tests
    echo "$cache/$(basename "$1")-$(sha256sum "$1" | cut -c1-16)"
}

install_packages() {
    local clients=tests/it/clients python node
    python=$(package_folder "$clients/requirements.txt")
    if [ ! -e "$python/complete" ]; then
        say "installing packages of PyPI into $python"
        rm -rf "$python"
        python3 -m venv "$python"
        "$python/bin/pip" install -q --disable-pip-version-check -r "$clients/requirements.txt"
        touch "$python/complete"
    fi
    node=$(package_folder "$clients/package.json")
    if [ ! -e "$node/complete" ]; then
        say "installing packages of npm into $node"
        rm -rf "$node"
        mkdir -p "$node"
        cp "$clients/package.json" "$clients/package-lock.json" "$node"
        npm ci --prefix "$node" --silent --no-audit --no-fund
        touch "$node/complete"
    fi
    export FEEDGATE_TEST_PYTHON=$python/bin/python FEEDGATE_TEST_NODE_MODULES=$node/node_modules
}
