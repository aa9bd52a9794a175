# Sourced by the scripts redis, postgres and mariadb: a throwaway server for tests, on 127.0.0.1, in the foreground. Its
# data lie in a fresh directory that is removed when the server ends; it ends when it is killed, or when its caller ends,
# however that comes about. The caller's process becomes the server, so that killing the one is killing the other.
# shellcheck shell=bash
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

CALLER=$PPID

# prepare NAME PORT USER: makes `data`, the directory, and `port`; `as` runs a command as USER where the caller is root,
# whom PostgreSQL and MariaDB refuse. An empty USER changes nobody.
prepare() {
  [[ $2 =~ ^[0-9]{1,5}$ ]] && (($2 <= 65535)) || die "the port is a number from 0 (a free one) to 65535"
  port=$2
  ((port > 0)) || port=$(quiet_port)
  as=()
  data=$(mktemp -d "${TMPDIR:-/tmp}/claimant-$1.XXXXXX")
  trap 'rm -rf "$data"' EXIT
  if [[ $EUID == 0 && -n $3 ]]; then
    need setpriv "install util-linux, or run this as another user than root"
    id "$3" >/dev/null 2>&1 || die "there is no user $3 to run $1 as instead of root: make one, or do not be root"
    as=(setpriv --reuid "$3" --regid "$(id -gn "$3")" --init-groups)
    chown "$3" "$data"
  fi
  # What else it writes goes there too: it is sure that the user may.
  export TMPDIR=$data
  cd "$data"
}

# A port that nobody listens on, nor on the one 10,000 above it, which a node of a Redis cluster takes too: both below those
# that the system gives to outgoing connections.
quiet_port() {
  local port
  while :; do
    port=$((20000 + RANDOM % 2700))
    listens "$port" || listens $((port + 10000)) || break
  done
  echo "$port"
}

# become READY COMMAND...: the server, in place of this process; once its log shows READY, stdout says where it listens.
become() {
  local ready=$1
  shift
  trap - EXIT
  : >"$data/log"
  guard $$ "$ready" &
  exec "${as[@]}" "$@" >"$data/log" 2>&1 </dev/null
}

# guard SERVER READY: tells the caller, ends the server with it, and tidies up after the server.
guard() {
  # Ctrl-C goes to the whole group, the reader may be gone, and nobody else tidies up.
  trap '' INT TERM HUP PIPE
  local start=$SECONDS
  until grep -qs "$2" "$data/log"; do
    if ! lives "$1" || ((SECONDS - start > START_MAX_S)); then
      say "error: the server did not start on port $port; the end of its log:" && tail -n 20 "$data/log" >&2
      break
    fi
    sleep 0.05
  done
  ! lives "$1" || echo "listening on 127.0.0.1:$port" || true
  # Whoever reads it shall see its end when the server is gone.
  exec >/dev/null
  while lives "$1"; do sleep 0.2; done
  finish "$1"
  # PostgreSQL that was killed has left a segment of shared memory, which its seventh line names.
  local segment
  segment=$(sed -n '7s/.* //p' "$data/db/postmaster.pid" 2>/dev/null) || true
  [[ -z $segment ]] || ipcrm -m "$segment" 2>/dev/null || true
  rm -rf "$data"
}

# lives SERVER: whether it runs and is still its caller's child.
lives() {
  local seen parent state
  seen=$(ps -o ppid=,stat= -p "$1") || return 1
  read -r parent state <<<"$seen"
  [[ $parent == "$CALLER" && $state != Z* ]]
}

# finish SERVER: ends it. PostgreSQL takes its own processes along on the one signal, the others heed the other.
finish() {
  local deadline=$((SECONDS + STOP_MAX_S)) signals=(QUIT TERM) signal state
  while state=$(ps -o stat= -p "$1") && [[ $state != Z* ]]; do
    for signal in "${signals[@]}"; do kill -s "$signal" "$1" 2>/dev/null || true; done
    ((SECONDS < deadline)) || signals=(KILL)
    sleep 0.1
  done
}
