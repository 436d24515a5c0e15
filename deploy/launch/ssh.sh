#!/bin/bash
# A Heddle cluster over ssh for one job: the master here, workers on other hosts, and the end of them all.
set -euo pipefail
umask 077
heddle=@heddle@
ssh=@ssh@
remote_heddle=@remote_heddle@
listen=@listen@
hosts=(@hosts@)
worker_options=(@worker_options@)
own=$(mktemp -d)
master='' job='' workers=()

@cluster_of_job@
finish() {
  trap - EXIT
  trap '' INT TERM HUP
  [ -z "$job" ] || kill "$job" 2>/dev/null || true
  exec 9>&- # workers end when their standard input does
  for ((i = 0; i < 200; ++i)); do
    [ ${#workers[@]} -gt 0 ] && kill -0 "${workers[@]}" 2>/dev/null || break
    sleep 0.1
  done
  for process in "${workers[@]}" $master; do kill "$process" 2>/dev/null || true; done
  wait 2>/dev/null || true
  rm -rf "$own"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# Workers read this pipe behind their secrets; it ends with this process, however that ends, and all others with it.
life=$own/life
mkfifo "$life"
exec 9<>"$life" 8<"$life"

# On the other host, under sh: the secrets are the first lines of standard input, and what ends it ends the worker.
worker_code='umask 077
own=$(mktemp -d) || exit 6
exec 3<&0
IFS= read -r token <&3 && printf "%s\n" "$token" >"$own/token"
while IFS= read -r line <&3; do
  printf "%s\n" "$line" >>"$own/ca.pem"
  case $line in -----END*) break ;; esac
done
heddle=$1 master=$2
shift 2
XDG_STATE_HOME=$own "$heddle" worker --master "$master" --token-file "$own/token" --tls-ca "$own/ca.pem" "$@" 3<&- &
worker=$!
{ cat <&3 >/dev/null; kill "$worker"; } 2>/dev/null &
life=$!
wait "$worker"
code=$?
kill "$life" 2>/dev/null
rm -rf "$own"
exit "$code"'

# As one word of a POSIX shell.
quote() { printf "'%s' " "${1//\'/\'\\\'\'}"; }

start_worker() { # NUMBER HOST
  local line='' word
  for word in sh -c "$worker_code" heddle-worker "$remote_heddle" "$address" --peer-host "${2#*@}" "${worker_options[@]}"; do
    line+=$(quote "$word")
  done
  "$ssh" "$2" "$line" < <(exec 9>&-; cat "$own/state/worker.token"; exec cat "$own/tls/ca.pem" - <&8) \
    >"$own/worker-$1.log" 2>&1 8<&- 9>&- &
  workers+=($!)
}
check_workers() {
  for i in "${!workers[@]}"; do
    kill -0 "${workers[$i]}" 2>/dev/null ||
      fail "the worker on ${hosts[$i]} has ended: $(tail -n 1 "$own/worker-$i.log")"
  done
}

make_certificate "$listen"
start_master "$listen"
{ exec 9>&-; cat <&8 >/dev/null; kill "$master"; } 2>/dev/null &
for i in "${!hosts[@]}"; do start_worker "$i" "${hosts[$i]}"; done
wait_for_workers "${#hosts[@]}" check_workers
echo "heddle launch: workers: ${#hosts[@]}, master: $address" >&2
@job@
