#!/bin/sh
# check-packages.sh <crate>...: packs the crates as for publishing and compiles what was packed, all in one workspace. `cargo publish --dry-run` would
# build every crate with all its dependencies anew, one after the other: ten times as long, for the same answer.
set -eu
cd "$(dirname "$0")/.."
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
packed=$target/packed
selected=
for crate; do selected="$selected -p $crate"; done
rm -rf "$packed" "$target"/package/*.crate
# shellcheck disable=SC2086
cargo package --no-verify --allow-dirty $selected
mkdir -p "$packed"
{
    echo '[workspace]'
    echo 'resolver = "3"'
    echo 'members = ["*"]'
    echo '[patch.crates-io]'
} >"$packed/Cargo.toml"
for file in "$target"/package/*.crate; do
    tar -xzf "$file" -C "$packed"
    folder=$(basename "$file" .crate)
    # From the manifest: the folder is NAME-VERSION, and both may contain a hyphen, as in 0.2.0-rc.1.
    name=$(awk -F '"' '/^\[/ { package = $0 == "[package]" } package && /^name = / { print $2; exit }' "$packed/$folder/Cargo.toml")
    echo "$name = { path = \"$folder\" }" >>"$packed/Cargo.toml"
done
cp Cargo.lock "$packed/Cargo.lock"
# With default features, too, as most users compile them: code of a feature that is off must not be missed by what is on.
for features in --all-features ''; do
    # shellcheck disable=SC2086
    CARGO_TARGET_DIR=$target cargo check --manifest-path "$packed/Cargo.toml" --workspace $features
done
