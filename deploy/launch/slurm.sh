#!/bin/bash
@sbatch@
# A Heddle cluster for one job of Slurm: a master on the first node, a worker on each, and the end of them all.
set -euo pipefail
umask 077
heddle=@heddle@
worker_options=(@worker_options@)
# Keys and the job store stay on the first node; workers find the rest in a folder that all nodes see.
own=$(mktemp -d)
shared=$PWD/.heddle-$SLURM_JOB_ID
mkdir "$shared"
master='' job='' workers=''

@cluster_of_job@
finish() {
  trap - EXIT
  trap '' INT TERM
  for process in $job $workers; do kill "$process" 2>/dev/null || true; done
  [ -z "$workers" ] || wait "$workers" || true
  [ -z "$master" ] || kill "$master" 2>/dev/null || true
  wait || true
  rm -rf "$shared" "$own"
}
trap finish EXIT
trap 'exit 143' INT TERM

worker_code='own=$(mktemp -d) || exit 6
heddle=$1 master=$2 shared=$3
shift 3
XDG_STATE_HOME=$own "$heddle" worker --master "$master" --token-file "$shared/token" --tls-ca "$shared/ca.pem" \
  --peer-host "$(hostname -f)" "$@" &
worker=$!
trap "kill $worker" INT TERM
while kill -0 "$worker" 2>/dev/null; do wait "$worker"; code=$?; done
rm -rf "$own"
exit "$code"'

check_workers() { kill -0 "$workers" 2>/dev/null || fail "a worker has ended: $(tail -n 1 "$shared/workers.log")"; }

listen=$(hostname -f)
make_certificate "$listen"
start_master "$listen"
cp "$own/tls/ca.pem" "$shared/"
cp "$own/state/worker.token" "$shared/token"
srun --ntasks="$SLURM_NNODES" --ntasks-per-node=1 --kill-on-bad-exit=0 \
  sh -c "$worker_code" heddle-worker "$heddle" "$address" "$shared" "${worker_options[@]}" >"$shared/workers.log" 2>&1 &
workers=$!
wait_for_workers "$SLURM_NNODES" check_workers
echo "heddle launch: workers: $SLURM_NNODES, master: $address" >&2
@job@
