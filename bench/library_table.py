#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/library.md, from what `heddle-bench library --json`, peers/library_systemds.py and
peers/library_sklearn.py have printed (files of JSON objects, one a line; of several lines of a
case and size the best time of each counts) and bench/library_references.txt.

    bench/library_table.py --heddle FILE... --systemds FILE... --sklearn FILE [--write docs/library.md]

With --write, what stands between "<!-- tables -->" and "<!-- end of tables -->" is replaced.
"""
import argparse
import json
import os
import re
import statistics

PARSER = argparse.ArgumentParser()
PARSER.add_argument("--heddle", nargs="+", required=True)
PARSER.add_argument("--systemds", nargs="*", default=[])
PARSER.add_argument("--sklearn", default="")
PARSER.add_argument("--write", default="")
HERE = os.path.dirname(os.path.abspath(__file__))

# Cases that are one function in several ways, or have a name of their own.
NAMES = {"glm_probit": "glm", "gmm_VVV": "gmm", "gmm_EEE": "gmm", "gmm_VVI": "gmm", "gmm_VII": "gmm",
         "raJoin_nested_loop": "raJoin", "sliceLine_blocks": "sliceLine"}


def lines(paths):
    for path in paths:
        for line in open(path):
            if line.startswith("{"):
                yield json.loads(line)


def number(value):
    if value is None:
        return ""
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def quotient(other, own):
    return f"{number(other)} ({number(other / own)}x)" if other and own else ""


def main():
    options = PARSER.parse_args()
    references = {}
    for line in open(os.path.join(HERE, "library_references.txt")):
        words = [word.strip() for word in line.split("|")]
        if len(words) == 3:
            references[words[0]] = words[1:]
    sizes = {}
    names = []
    for line in open(os.path.join(HERE, "library_cases.txt")):
        if line.startswith("== "):
            words = line.split()
            names.append(words[1])
            sizes[words[1]] = [int(word) for word in words[2:]]
    own = {}
    for line in lines(options.heddle):
        best = own.setdefault((line["case"], line["rows"]), {})
        for key in ("ms", "other_ms"):
            if key in line:
                best[key] = min(best.get(key, line[key]), line[key])
    systemds = {(line["case"], line["rows"]): line for line in lines(options.systemds)}

    text = ["| function | reference | largest difference | rows | ms | SystemDS's script in Heddle | SystemDS | rows "
            "| ms | SystemDS's script in Heddle |", "|---|---|---|---|---|---|---|---|---|---|"]
    ratios, second, other_engine = {0: [], 1: []}, [], []
    slower, shown = [], set()
    for name in names:
        reference, difference = references.get(NAMES.get(name, name), ["", ""])
        row = [name, reference, difference]
        for size, rows in enumerate(sizes[name]):
            line = own.get((name, rows), {})
            ms, other = line.get("ms"), line.get("other_ms")
            row += [str(rows), number(ms), quotient(other, ms)]
            if ms and other:
                ratios[size].append(other / ms)
                if size == 1:
                    second.append((name, other / ms))
                    if other < 0.95 * ms:
                        slower.append((name, rows, ms, other))
            if size == 0:
                there = systemds.get((name, rows), {}).get("ms")
                row.append(quotient(there, ms))
                if there and ms:
                    other_engine.append(there / ms)
        shown.add(NAMES.get(name, name))
        text.append("| " + " | ".join(row) + " |")
    for name, (reference, difference) in references.items():
        if name not in shown:
            text.append(f"| {name} | {reference} | {difference} | | | | | | | |")
    text += ["", f"How many times slower than Heddle's functions, medians: SystemDS's scripts in Heddle "
             f"{statistics.median(ratios[0]):.2f} at the smaller size ({len(ratios[0])} cases), "
             f"{statistics.median(ratios[1]):.2f} at the larger ({len(ratios[1])})"
             + (f"; SystemDS {statistics.median(other_engine):.1f} ({len(other_engine)} cases, smaller size)."
                if other_engine else ".")]
    if options.sklearn:
        text += ["", "| function | peer | ms | ms of the peer | times slower | loss | loss of the peer |",
                 "|---|---|---|---|---|---|---|"]
        found = []
        for line in lines([options.sklearn]):
            found.append(line["ratio"])
            text.append(f"| {line['function']} | {line['peer']} | {number(line['ms'])} | {number(line['peer_ms'])} | "
                        f"{line['ratio']:.1f} | {line['loss']:.10g} | {line['peer_loss']:.10g} |")
        text += ["", f"Median: {statistics.median(found):.1f}."]
    if options.write:
        page = open(options.write).read()
        tables = "<!-- tables -->\n" + "\n".join(text) + "\n<!-- end of tables -->"
        page = re.sub(r"<!-- tables -->.*<!-- end of tables -->", lambda found: tables, page, flags=re.S)
        open(options.write, "w").write(page)
    else:
        print("\n".join(text))
    print("\nSlower at the larger size than SystemDS's script:")
    for name, rows, ms, other in sorted(slower, key=lambda one: one[3] / one[2]):
        print(f"{name} {rows}: {number(ms)} ms, {number(other)} ms ({other / ms:.2f})")


if __name__ == "__main__":
    main()
