#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Is a file what Perfetto and chrome://tracing read? check_trace.py TRACE.json [ranks]. Prints what is in it."""

import json
import sys


def fail(text):
    print(text)
    sys.exit(1)


def check(condition, text):
    if not condition:
        fail(text)


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


with open(sys.argv[1], encoding="utf-8") as file:
    trace = json.load(file)
ranks = int(sys.argv[2]) if len(sys.argv) > 2 else 1
check(set(trace) == {"displayTimeUnit", "otherData", "traceEvents"}, f"has {set(trace)}")
check(isinstance(trace["otherData"]["dropped_events"], int), "does not say how many events are left out")
names, open_copies, kinds = {}, {}, {}
last = {}
for event in trace["traceEvents"]:
    kind = event["ph"]
    kinds[kind] = kinds.get(kind, 0) + 1
    check(kind in "MXbeC", f"an event of kind {kind}")
    check(isinstance(event["pid"], int) and 0 <= event["pid"] < ranks, f"an event of process {event['pid']}")
    check(isinstance(event["name"], str), "an event without a name")
    if kind == "M":
        name = event["args"]["name"]
        check(name.isascii() and name.isprintable() and 0 < len(name) < 60, f"a track is called {name!r}")
        names[(event["pid"], event["tid"])] = name
        continue
    check(is_number(event["ts"]), "an event without a time")
    if kind == "X":
        track = (event["pid"], event["tid"])
        check(track in names, f"nobody said what track {track} is")
        check(is_number(event["dur"]) and event["dur"] >= 0, "an event without a duration")
        check(event["cat"] in {"operator", "planning", "call", "loop"}, f"an event about {event['cat']}")
        # Events of a track are inside of each other or one after the other; times are rounded to nanoseconds.
        stack = last.setdefault(track, [])
        while stack and stack[-1] <= event["ts"] + 0.002:
            stack.pop()
        end = event["ts"] + event["dur"]
        check(not stack or end <= stack[-1] + 0.002, f"{event['name']} overlaps another event of {names[track]}")
        stack.append(end)
    if kind == "b":
        check(event["id"] not in open_copies, "a copy begins twice")
        open_copies[event["id"]] = event["ts"]
    if kind == "e":
        check(open_copies.pop(event["id"]) <= event["ts"], "a copy ends before it begins")
    if kind == "C":
        check(event["args"]["bytes"] >= 0, "less memory than none")
check(not open_copies, "copies that do not end")
check(kinds.get("X", 0) > 0 and kinds.get("C", 0) > 0, f"no operators or no memory: {kinds}")
check(len({process for process, _ in names}) == ranks, f"tracks of {names}")
print(json.dumps({"kinds": kinds, "tracks": sorted(set(names.values()))}))
