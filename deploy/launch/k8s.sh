#!/bin/bash
# A Heddle cluster in Kubernetes for one job: a master, its workers, the job, and the end of them all. The chart in
# deploy/helm is for clusters that stay.
set -euo pipefail
umask 077
heddle=@heddle@
kubectl=(@kubectl@ --namespace @namespace@)
# All that is made bears this label, and what bears it is removed: nothing of anybody else has its value.
launch=$(head -c 8 /dev/urandom | od -An -v -tx1 | tr -d ' \n')
name=@name@
own=$(mktemp -d)
child=''

finish() {
  trap - EXIT
  trap '' INT TERM HUP
  [ -z "$child" ] || kill "$child" 2>/dev/null || true
  "${kubectl[@]}" delete --ignore-not-found --wait=false statefulset,service,secret --selector "heddle.dev/launch=$launch" >&2 || true
  rm -rf "$own"
}

# In the background, as a trap only runs at once while the shell waits.
run() { # ARGUMENT...
  "${kubectl[@]}" "$@" <&0 &
  child=$!
  code=0
  wait "$child" || code=$?
  child=''
  return "$code"
}

# Secrets go from files of this user into a Secret, never through a command line.
secret() {
  printf '%s\n' "apiVersion: v1" "kind: Secret" "metadata:" "  name: \"$name\"" "  labels:" "    heddle.dev/launch: \"$launch\"" "data:"
  for file in token worker-token tls.crt tls.key; do
    printf '  %s: %s\n' "$file" "$(base64 -w 0 <"$own/$file")"
  done
}

manifests() {
  secret
  echo ---
  sed "s/%launch%/$launch/g; s/%name%/$name/g" <<'MANIFESTS'
@manifests@
MANIFESTS
}

trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
for token in token worker-token; do head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \n' >"$own/$token"; done
{ "$heddle" admin cert authority --folder "$own/tls" --days 30 &&
  "$heddle" admin cert server --folder "$own/tls" --host "$name-master" --days 30; } >/dev/null
cat "$own/tls/server.pem" "$own/tls/ca.pem" >"$own/tls.crt" # what the master shows, and what callers know it by
cp "$own/tls/server.key" "$own/tls.key"
manifests | "${kubectl[@]}" create -f - >&2 # fails where something has one of the names already
run rollout status --timeout=10m "statefulset/$name-master" >&2
run rollout status --timeout=10m "statefulset/$name-worker" >&2
run exec -i "statefulset/$name-master" -- heddle job submit --workers @workers@ --master "$name-master:7077" \
  --token-file /run/heddle/token --tls-ca /run/heddle/tls.crt @job@
