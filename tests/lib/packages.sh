# Packages of PyPI and npm for the tests, for tests/run and tests/generators/run, which source this
# file. They are installed once, outside the repository, in the versions that files here name.

# Exports FEEDGATE_TEST_PYTHON, a Python that has those of tests/it/clients, and
# FEEDGATE_TEST_NODE_MODULES, their folder.
install_packages() {
    local python node
    python=$(python_packages tests/it/clients/requirements.txt)
    node=$(node_packages tests/it/clients)
    export FEEDGATE_TEST_PYTHON=$python/bin/python FEEDGATE_TEST_NODE_MODULES=$node/node_modules
}

# Installs the packages that the file $1 names, if they are not there, and prints their folder, a
# virtual environment.
python_packages() {
    local folder
    folder=$(package_folder "$1")
    if [ ! -e "$folder/complete" ]; then
        say "installing packages of PyPI into $folder" >&2
        rm -rf "$folder"
        python3 -m venv "$folder"
        "$folder/bin/pip" install -q --disable-pip-version-check -r "$1" >&2
        touch "$folder/complete"
    fi
    echo "$folder"
}

# Installs the packages that package.json in the folder $1 names, if they are not there, and prints
# the folder with node_modules.
node_packages() {
    local folder
    folder=$(package_folder "$1/package.json")
    if [ ! -e "$folder/complete" ]; then
        say "installing packages of npm into $folder" >&2
        rm -rf "$folder"
        mkdir -p "$folder"
        cp "$1/package.json" "$1/package-lock.json" "$folder"
        npm ci --prefix "$folder" --silent --no-audit --no-fund --ignore-scripts >&2
        touch "$folder/complete"
    fi
    echo "$folder"
}

# Prints the folder for what the file $1 names: another one for each content of that file.
package_folder() {
    local cache=${XDG_CACHE_HOME:-$HOME/.cache}/feedgate-tests
    echo "$cache/$(basename "$1")-$(sha256sum "$1" | cut -c1-16)"
}
