#!/bin/bash
# A Heddle cluster in Kubernetes for one job: a master, its workers, the job, and the end of them all. The chart in
# deploy/helm is for clusters that stay.
set -euo pipefail
umask 077
kubectl=(@kubectl@ --namespace @namespace@)
name=@name@
own=$(mktemp -d)

finish() {
  trap - EXIT
  trap '' INT TERM HUP
  "${kubectl[@]}" delete --ignore-not-found --wait=false statefulset,service,secret --selector "app.kubernetes.io/instance=$name" >&2 || true
  rm -rf "$own"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# Secrets go from files of this user into a Secret, never through a command line.
for token in token worker-token; do head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \n' >"$own/$token"; done
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 -subj /CN=heddle \
  -addext "subjectAltName=DNS:$name-master" -keyout "$own/tls.key" -out "$own/tls.crt" 2>/dev/null
"${kubectl[@]}" create secret generic "$name" --from-file="$own/token" --from-file="$own/worker-token" --from-file="$own/tls.crt" --from-file="$own/tls.key" >&2
"${kubectl[@]}" label secret "$name" "app.kubernetes.io/instance=$name" >&2

"${kubectl[@]}" apply -f - >&2 <<'MANIFESTS'
@manifests@
MANIFESTS
"${kubectl[@]}" rollout status --timeout=10m "statefulset/$name-master" >&2
"${kubectl[@]}" rollout status --timeout=10m "statefulset/$name-worker" >&2
@job@
