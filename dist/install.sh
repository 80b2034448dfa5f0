#!/bin/sh
# Installs the command `throughline` for this user: fetches the archive of a release, verifies its checksum, and puts the
# program into ~/.local/bin. Run again to upgrade. `install.sh --uninstall` removes what it put there; the record stays.
#
#   THROUGHLINE_VERSION   a version, such as 0.1.0; the newest without it
#   THROUGHLINE_PREFIX    another place than ~/.local
#   THROUGHLINE_RELEASES  another address than that of the releases; a folder is one, too
set -eu

releases=${THROUGHLINE_RELEASES:-@releases@}
prefix=${THROUGHLINE_PREFIX:-$HOME/.local}

fail() {
  echo "error: $1" >&2
  exit 1
}

uninstall() {
  rm -f "$prefix/bin/throughline"
  rm -f "$prefix"/share/man/man1/throughline.1 "$prefix"/share/man/man1/throughline-*.1
  rm -f "$prefix/share/bash-completion/completions/throughline"
  rm -rf "$prefix/share/doc/throughline"
  echo "throughline is removed. The record is still in ~/.throughline."
}

target() {
  case "$(uname -s)/$(uname -m)" in
    Linux/x86_64) echo x86_64-unknown-linux-musl ;;
    Linux/aarch64 | Linux/arm64) echo aarch64-unknown-linux-musl ;;
    Darwin/x86_64) echo x86_64-apple-darwin ;;
    Darwin/arm64) echo aarch64-apple-darwin ;;
    *) fail "there is no package for $(uname -s) on $(uname -m); build it with cargo" ;;
  esac
}

fetch() {
  case "$1" in
    http://* | https://*)
      if command -v curl >/dev/null 2>&1; then
        curl --proto '=https,http' --fail --silent --show-error --location --output "$2" "$1"
      elif command -v wget >/dev/null 2>&1; then
        wget -q -O "$2" "$1"
      else
        fail "neither curl nor wget is here"
      fi
      ;;
    *) cp "$1" "$2" ;;
  esac
}

checksum() {
  if command -v sha256sum >/dev/null 2>&1; then
    sha256sum "$1"
  elif command -v shasum >/dev/null 2>&1; then
    shasum -a 256 "$1"
  else
    fail "neither sha256sum nor shasum is here"
  fi | cut -d ' ' -f 1
}

install_() {
  target=${THROUGHLINE_TARGET:-$(target)}
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT INT TERM
  version=${THROUGHLINE_VERSION:-}
  if [ -z "$version" ]; then
    fetch "$releases/latest/download/VERSION" "$folder/VERSION" || fail "the newest version is unknown; set THROUGHLINE_VERSION"
    version=$(cat "$folder/VERSION")
  fi
  name=throughline-$version-$target
  fetch "$releases/download/v$version/$name.tar.gz" "$folder/archive" || fail "cannot fetch $name.tar.gz"
  fetch "$releases/download/v$version/$name.tar.gz.sha256" "$folder/sum" || fail "cannot fetch the checksum of $name.tar.gz"
  [ "$(checksum "$folder/archive")" = "$(cut -d ' ' -f 1 "$folder/sum")" ] || fail "the checksum of $name.tar.gz is wrong; nothing was installed"
  tar -xzf "$folder/archive" -C "$folder"
  # A program of another system fails here, before anything is replaced.
  "$folder/$name/throughline" --version >/dev/null || fail "the program does not run here; nothing was installed"
  mkdir -p "$prefix/bin" "$prefix/share/man/man1" "$prefix/share/bash-completion/completions" "$prefix/share/doc/throughline"
  # Renamed over the old one: a gateway that runs keeps its program until it is restarted.
  cp "$folder/$name/throughline" "$prefix/bin/.throughline.new"
  chmod 755 "$prefix/bin/.throughline.new"
  mv "$prefix/bin/.throughline.new" "$prefix/bin/throughline"
  cp "$folder/$name"/man/* "$prefix/share/man/man1/"
  cp "$folder/$name/completions/throughline.bash" "$prefix/share/bash-completion/completions/throughline"
  for file in LICENSE-MIT LICENSE-APACHE THIRD-PARTY-LICENSES.txt sbom.cdx.json; do
    cp "$folder/$name/$file" "$prefix/share/doc/throughline/"
  done
  echo "throughline $version is in $prefix/bin"
  case ":$PATH:" in
    *":$prefix/bin:"*) echo "Start with: throughline run claude" ;;
    *) echo "Put $prefix/bin into PATH, then: throughline run claude" ;;
  esac
}

case "${1:-}" in
  "") install_ ;;
  --uninstall) uninstall ;;
  *) fail "unknown argument: $1" ;;
esac
