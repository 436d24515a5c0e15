# What this cluster alone knows: a key, and the tokens that the master makes, in files that only this user can read. Workers get
# the one by which they join, through files and pipes, never through a command line or the environment.
make_certificate() { # HOST
  { "$heddle" admin cert authority --folder "$own/tls" --days 30 &&
    "$heddle" admin cert server --folder "$own/tls" --host "$1" --days 30; } >"$own/tls.log" 2>&1 ||
    fail "no certificate could be made: $(tail -n 1 "$own/tls.log")"
  rm "$own/tls/ca.key" # nothing else is to be signed
}

fail() { # WHY
  echo "heddle launch: $1" >&2
  exit 6
}

start_master() { # HOST
  "$heddle" master --listen "$1:0" --state "$own/state" \
    --tls-certificate "$own/tls/server.pem" --tls-key "$own/tls/server.key" >"$own/master.log" 2>&1 8<&- 9>&- &
  master=$!
  for ((i = 0; i < 600; ++i)); do
    [ ! -s "$own/state/address" ] || break
    kill -0 "$master" 2>/dev/null || fail "the master has ended: $(tail -n 1 "$own/master.log")"
    sleep 0.1
  done
  [ -s "$own/state/address" ] || fail "the master does not listen after a minute"
  address=$(cat "$own/state/address")
  here=(--master "$address" --token-file "$own/state/client.token" --tls-ca "$own/tls/ca.pem")
}

wait_for_workers() { # COUNT CHECK
  for ((i = 0; i < 1200; ++i)); do
    count=$("$heddle" admin nodes --json "${here[@]}" | grep -c '"state":"ALIVE"' || true)
    [ "$count" -lt "$1" ] || return 0
    "$2"
    sleep 0.1
  done
  fail "only $count of $1 workers have come after two minutes"
}

# In the background, as a trap only runs at once while the shell waits.
run_job() { # OPTION... SCRIPT...
  "$heddle" job submit "${here[@]}" "$@" <&0 8<&- 9>&- &
  job=$!
  [ -z "${life:-}" ] || { exec 9>&-; cat <&8 >/dev/null; kill "$job"; } 2>/dev/null &
  code=0
  wait "$job" || code=$?
  job=
  return "$code"
}
