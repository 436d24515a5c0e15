#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The cases of bench/library_cases.txt in Apache SystemDS, one JSON object a line.

    bench/peers/library_systemds.py --systemds CMD [--size 0|1] [--rounds 3] [--timeout 60] [--only NAME,...] [CASES]

CMD SCRIPT runs a DML script. What a case measures runs ROUNDS times in one process; the best round counts, by time(),
between the end of what prepares and the printed result of what is measured.
"""
import argparse
import json
import os
import re
import subprocess
import tempfile

PARSER = argparse.ArgumentParser()
PARSER.add_argument("cases", nargs="?", default=os.path.join(os.path.dirname(__file__), "..", "library_cases.txt"))
PARSER.add_argument("--systemds", required=True)
PARSER.add_argument("--size", type=int, default=0)
PARSER.add_argument("--rounds", type=int, default=3)
PARSER.add_argument("--timeout", type=float, default=60)
PARSER.add_argument("--only", default="")
PARSER.add_argument("--library", default="", help="a folder that source() of nn/... is looked for in")


def cases(path):
    for block in open(path).read().split("\n== ")[1:]:
        head, body = block.split("\n", 1)
        prepared, measured = ("\n" + body).split("\n--\n", 1)
        yield head.split()[0], [int(word) for word in head.split()[1:]], prepared.strip(), measured.strip()


def script(prepared, measured, rows, rounds, library):
    prepared = re.sub(r'source\("nn/', f'source("{library}nn/', prepared)
    variables = re.findall(r"^(\w+) = (?!function)", prepared, re.M)
    # What prepares must be over before the clock starts: a print that depends on each of its variables.
    text = [prepared, "ready = 0"]
    text += [f"ready = ready + length({name})" for name in dict.fromkeys(variables) if name not in ("spec",)]
    text += ['if (ready < 0) print("never")']
    for number in range(rounds):
        # Each round is a block of its own, which the condition keeps from being merged with others.
        text += ["begin = time()", "if (begin > 0) {", measured, '  print("result " + s)', "}",
                 'print("round " + (time() - begin))']
        text += [f's = {number}']
    return "\n".join(text).replace("$rows", str(rows)) + "\n"


def main():
    options = PARSER.parse_args()
    only = options.only.split(",") if options.only else []
    for name, sizes, prepared, measured in cases(options.cases):
        if only and name not in only:
            continue
        rows = sizes[options.size]
        with tempfile.NamedTemporaryFile("w", suffix=".dml") as file:
            file.write(script(prepared, measured, rows, options.rounds, options.library))
            file.flush()
            line = {"bench": "library_systemds", "case": name, "rows": rows}
            try:
                done = subprocess.run([options.systemds, file.name], capture_output=True, text=True,
                                      timeout=options.timeout)
                rounds = [float(ns) * 1e-6 for ns in re.findall(r"^round ([0-9.E]+)", done.stdout, re.M)]
                result = re.findall(r"^result (.*)", done.stdout, re.M)
                if rounds:
                    line["ms"] = round(min(rounds), 3)
                    line["result"] = result[-1][:40] if result else ""
                if len(rounds) < options.rounds:
                    text = [said for said in (done.stderr + done.stdout).splitlines() if said.strip()]
                    errors = [said for said in text if re.search(r"rror|xception", said)]
                    line["error"] = " / ".join((errors or text)[-3:])[:400]
            except subprocess.TimeoutExpired:
                line["error"] = f"more than {options.timeout:g} s"
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
