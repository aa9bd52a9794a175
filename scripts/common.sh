# Sourced by the scripts beside it: strict mode, the places, how to fail, and what more than one of them does.
# shellcheck shell=bash

set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
TOOLS=$ROOT/.tools
# Where cargo puts what it builds.
BUILT=${CARGO_TARGET_DIR:-$ROOT/target}

# `cargo lambda` finds its subcommand here.
export PATH=$TOOLS/bin:$PATH
export SAM_CLI_TELEMETRY=0
# A proxy has no way to our own servers, nor to those that the person names. Programs read the one or the other.
not_proxied=127.0.0.1,localhost${NO_PROXY:+,$NO_PROXY}${no_proxy:+,$no_proxy}
export NO_PROXY=$not_proxied no_proxy=$not_proxied

say() { printf '%s\n' "$*" >&2; }

die() {
  say "error: $*"
  exit 1
}

# need COMMAND HOW-TO-GET-IT
need() { command -v "$1" >/dev/null || die "$1 is not installed: $2"; }

# listens PORT: whether anything accepts connections there.
listens() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
