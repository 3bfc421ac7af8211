#!/usr/bin/env bash
# Build the image of deploy/Containerfile on a root file system by debootstrap, and run its program, without a registry and
# without a container runtime. Needs root, and Debian's buildah and debootstrap.
set -euo pipefail
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export STORAGE_DRIVER=vfs BUILDAH_ISOLATION=chroot
build() { buildah --root "$work/storage" --runroot "$work/run" "$@"; }

debootstrap --variant=minbase bookworm "$work/base" > "$work/debootstrap.log" || { tail "$work/debootstrap.log"; exit 1; }
# The image is built behind the same proxy as this machine, whose authority Debian's own store does not have.
cp -r /usr/local/share/ca-certificates/. "$work/base/usr/local/share/ca-certificates/"
base=$(build from scratch)
build add -q "$base" "$work/base" / > /dev/null
build config --env SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt "$base"
build commit -q "$base" localhost/base > /dev/null
build rm "$base" > /dev/null
rm -rf "$work/base"

# What git knows, as in a fresh clone.
mkdir "$work/source"
git archive HEAD | tar x -C "$work/source"
build build --format docker --pull-never -f "$work/source/deploy/Containerfile" -t switchboard \
    --build-arg BASE=localhost/base --build-arg SOURCE_DATE_EPOCH="$(git log -1 --format=%ct)" "$work/source"
container=$(build from --pull-never localhost/switchboard)
test "$(build run "$container" -- id -u)" = 10001
build run "$container" -- switchboard --help > /dev/null
build run "$container" -- switchboard plugins list
