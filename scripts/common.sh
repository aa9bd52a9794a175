# Sourced by the scripts beside it: strict mode, the places, how to fail, and what more than one of them does.
# shellcheck shell=bash

set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
TOOLS=$ROOT/.tools
# Where cargo puts what it builds.
BUILT=${CARGO_TARGET_DIR:-$ROOT/target}
PYTHON=$TOOLS/venv/bin/python

# `cargo lambda` finds its subcommand here.
export PATH=$TOOLS/bin:$PATH
export SAM_CLI_TELEMETRY=0 DDB_LOCAL_TELEMETRY=0
# A proxy has no way to our own servers.
export NO_PROXY=127.0.0.1,localhost no_proxy=127.0.0.1,localhost

# How long anything may take to start.
START_MAX_S=60
# How long anything may take to stop before it is killed.
STOP_MAX_S=15

say() { printf '%s\n' "$*" >&2; }

die() {
  say "error: $*"
  exit 1
}

# need COMMAND HOW-TO-GET-IT
need() { command -v "$1" >/dev/null || die "$1 is not installed: $2"; }

# A port of 127.0.0.1 that was free a moment ago.
free_port() { "$PYTHON" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

# listens PORT: whether anything accepts connections there.
listens() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# fetch URL
fetch() { "$PYTHON" -c 'import sys, urllib.request as r; print(r.urlopen(sys.argv[1], timeout=30).read().decode())' "$1"; }

# json TEXT EXPRESSION: the value of a Python expression over the text's `data`.
json() { "$PYTHON" -c 'import json, sys; data = json.loads(sys.argv[1]); print(eval(sys.argv[2]))' "$1" "$2"; }

# wait_until SECONDS WHAT COMMAND...: until the command succeeds.
wait_until() {
  local deadline=$((SECONDS + $1)) what=$2
  shift 2
  until "$@"; do
    ((SECONDS < deadline)) || die "$what: not ready within the time given"
    sleep 0.1
  done
}

# wait_for_line PID PATTERN FILE: false if the process ends, or the time does, before it wrote such a line.
wait_for_line() {
  local deadline=$((SECONDS + START_MAX_S))
  until grep -qs "$2" "$3"; do
    kill -0 "$1" 2>/dev/null && ((SECONDS < deadline)) || return 1
    sleep 0.1
  done
}

# stop_group PID: ends a job made under `set -m` and all it started; if asking is no use, by force.
stop_group() {
  local deadline=$((SECONDS + STOP_MAX_S))
  # Bash would report the end of a job that it still knows.
  disown "$1" 2>/dev/null || true
  kill -TERM -- "-$1" 2>/dev/null || return 0
  while kill -0 -- "-$1" 2>/dev/null; do
    ((SECONDS < deadline)) || { kill -KILL -- "-$1" 2>/dev/null || return 0; }
    sleep 0.1
  done
}
