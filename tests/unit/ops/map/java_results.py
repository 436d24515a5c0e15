#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what Java gives into java_results.txt: the third field of each line is made of the first two.

A line is an expression of map(), a cell, and String.valueOf() of what the expression gives for it, or "throws". Fields
are parted by tabs; in the other two tabs, line ends and backslashes are \\t, \\n, \\r and \\\\, and any unit may be \\u0041. Needs a JDK 17 (java).

    tests/unit/ops/map/java_results.py        # after a line was added or changed
"""
import os
import subprocess
import tempfile

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "java_results.txt")


def units(character):
    encoded = character.encode("utf-16-be")
    return [int.from_bytes(encoded[i:i + 2], "big") for i in range(0, len(encoded), 2)]


def literal(text):
    return '"' + "".join("\\%03o" % ord(c) if ord(c) < 128 else "".join("\\u%04x" % unit for unit in units(c))
                         for c in text) + '"'


def unescaped(text):
    return text.replace("\\\\", "\0").replace("\\t", "\t").replace("\\n", "\n").replace("\\r", "\r").replace("\0", "\\")


def main():
    lines = [line.rstrip("\n").split("\t") for line in open(PATH, encoding="utf-8") if line.strip()]
    cases = [(line[0], unescaped(line[1])) for line in lines if not line[0].startswith("#")]
    source = ["import java.util.*; import java.time.*; import java.time.temporal.*; import java.util.stream.*;",
              "public class Results {", "interface Case { String of(String x); }"]
    for i, (expression, _) in enumerate(cases):
        name, body = expression.split("->", 1)
        source.append("static String case%d(String %s) { return String.valueOf(%s); }" % (i, name.strip(), body))
    source.append("static void tell(Case c, String x) { String r; try { r = c.of(x); } catch (RuntimeException e) {"
                  " out.append(\"throws\\n\"); return; }"
                  " for (char u : r.toCharArray()) { if (u == 92) out.append(\"\\\\\\\\\"); else if (u >= 32 && u < 127)"
                  " out.append(u); else out.append(String.format(\"%su%04x\", (char) 92, (int) u)); }"
                  " out.append((char) 10); }")
    source.append("static StringBuilder out = new StringBuilder();")
    source.append("public static void main(String[] a) throws Exception {")
    for i, (_, cell) in enumerate(cases):
        source.append("tell(Results::case%d, %s);" % (i, literal(cell)))
    source.append("System.out.write(out.toString().getBytes(\"UTF-8\")); System.out.flush(); } }")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "Results.java")
        open(path, "w", encoding="utf-8").write("\n".join(source))
        results = subprocess.run(["java", "-Duser.language=en", "-Duser.country=US", path], check=True,
                                 stdout=subprocess.PIPE).stdout.decode("utf-8").split("\n")
    with open(PATH, "w", encoding="utf-8") as out:
        at = 0
        for line in lines:
            if not line[0].startswith("#"):
                line = [line[0], line[1], results[at]]
                at += 1
            out.write("\t".join(line) + "\n")


if __name__ == "__main__":
    main()
