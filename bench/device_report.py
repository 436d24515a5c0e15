#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a device computes beside the processor, and how fast, as one JSON file (deploy/device builds what it runs).

    bench/device_report.py [--device opencl:0] [--out device.json] [--seconds 230] [SCRIPT...]

It runs, in this order and until the seconds are over:

    devices      `heddle devices`: bandwidth, copies, fused multiply-adds, launches
    kernels      the tests of operators on devices (test_ops)
    products     X %*% X on the device and on the processor, in doubles and floats
    expressions  `heddle-bench devices`: fused expressions on opencl:0 and on the processor, in turns
    scripts      each SCRIPT with --devices cpu and on the device, with fusion by cost, fusion of all that can be, and
                 two workers: hashes of what they print and write. A SCRIPT is a name in tests/scripts/cases (all by
                 default), or a file.

What time was left for is told in "left_out". Exit code: 0 if all bytes are the same, 1 if some differ or a run fails, 2 for
a wrong command line, 3 if there is no such device.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import platform
import shlex
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CASES = os.path.join(ROOT, "tests", "scripts", "cases")
PARTS = ["kernels", "products", "expressions", "scripts"]
# Of the time that is left, what expressions may take.
EXPRESSIONS_SHARE = 0.4
# What a run on the device is given beside --devices; the processor runs the first one.
VARIANTS = ["run", "run --fusion all", "sim --workers 2 --min-distributed-bytes 0 --fusion all"]
# Of one run: a driver that compiles for minutes leaves time for other scripts.
MOST_SECONDS = 60
# Of a report, so that a fault that is everywhere is not told everywhere.
MOST_TEXT = 600
# Square matrices whose product is multiplied again; cells stay near 1 / n.
PRODUCTS = """X = rand(rows={n}, cols={n}, min=-{scale}, max={scale}, seed=1)
Z = rand(rows={n}, cols={n}, min=-1, max=1, seed=2)
{steps}print(sum(Z * Z))
"""


class Clock:
    def __init__(self, seconds):
        self.start = time.monotonic()
        self.end = self.start + seconds

    def left(self):
        return self.end - time.monotonic()

    def passed(self):
        return round(time.monotonic() - self.start, 2)


def run(words, folder, clock, most=float("inf")):
    """The finished process, or None if the time was over first, or `most` seconds of it."""
    if clock.left() <= 1:
        return None
    try:
        return subprocess.run(words, cwd=folder, capture_output=True, timeout=min(clock.left(), most),
                              stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return None


def text_of(data):
    return data.decode(errors="replace").strip()[:MOST_TEXT]


def spans_on(trace, stream):
    """Operators of a trace on a stream, in the order in which they began: name, begin and end in microseconds."""
    try:
        with open(trace) as file:
            events = json.load(file)
    except (OSError, ValueError):
        return []
    events = events["traceEvents"] if isinstance(events, dict) else events
    spans = [(e["name"], e["ts"], e["ts"] + e["dur"]) for e in events
             if e.get("cat") == "operator" and e["args"].get("stream", "").startswith(stream)]
    return sorted(spans, key=lambda span: span[1])


class Report:
    def __init__(self, options, clock):
        self.options = options
        self.clock = clock
        self.heddle = os.path.join(options.build, "heddle")
        self.left_out = []
        self.failures = []
        self.result = {}

    def devices(self):
        done = run([self.heddle, "devices", "--json"], ROOT, Clock(120))
        if done is None or done.returncode != 0:
            sys.exit("deploy/device: heddle devices failed: " + (text_of(done.stderr) if done else "no time"))
        found = json.loads(done.stdout)
        self.result["devices"] = found["devices"]
        names = [device["device"] for device in found["devices"]]
        if self.options.device not in names:
            why = found["why"] or f"there are {', '.join(names)}"
            return f"no device {self.options.device}: {why}" + (f"\n  {found['next']}" if found["next"] else "")
        device = found["devices"][names.index(self.options.device)]
        return "" if device["is_usable"] else f"{self.options.device} ({device['name']}) is not used: {device['refused']}"

    def kernels(self):
        tests = os.path.join(self.options.build, "tests", "test_ops")
        if not os.path.exists(tests):
            self.left_out.append(f"kernels: {tests} is not built")
            return
        with tempfile.TemporaryDirectory() as folder:
            told = os.path.join(folder, "tests.json")
            # All of them, also where a part of another suite of GoogleTest has called for the report.
            done = run(["env", "-u", "GTEST_TOTAL_SHARDS", "-u", "GTEST_SHARD_INDEX",
                        f"HEDDLE_TEST_DEVICE={self.options.device}", tests, f"--gtest_filter={self.options.kernels}",
                        f"--gtest_output=json:{told}"], folder, self.clock)
            if done is None:
                self.left_out.append("kernels: the tests took longer than there was time")
                return
            if not os.path.exists(told):
                self.failures.append(f"test_ops ended with {done.returncode}: {text_of(done.stderr)}")
                return
            with open(told) as file:
                suites = json.load(file).get("testsuites", [])
        tests = [(f"{suite['name']}.{test['name']}", test) for suite in suites for test in suite["testsuite"]]
        failed = {name: test["failures"][0]["failure"][:MOST_TEXT] for name, test in tests if "failures" in test}
        skipped = [name for name, test in tests if test.get("result") == "SKIPPED"]
        self.result["kernels"] = {"tests": len(tests), "failed": failed, "skipped": skipped,
                                  "seconds": {name: float(test["time"].rstrip("s")) for name, test in tests}}
        self.failures += [f"test {name}" for name in failed]
        if not tests or skipped:
            self.failures.append("no test of kernels" if not tests else f"tests were skipped: {', '.join(skipped)}")

    def product(self, n, precision, devices, stream):
        """Multiplications and additions of a second, from the second product to the end of the last, and the output."""
        # The first one compiles the kernel. Without fusion, since products are to be operators of their own.
        script = PRODUCTS.format(n=n, scale=(3.0 / n) ** 0.5, steps="Z = X %*% Z\n" * 6)
        with tempfile.TemporaryDirectory() as folder:
            trace = os.path.join(folder, "trace.json")
            done = run([self.heddle, "run", "--devices", devices, "--fusion", "off", "--precision", precision,
                        "--trace", trace, "-e", script], folder, self.clock)
            if done is None:
                return None, None
            if done.returncode != 0:
                self.failures.append(f"a product of {n} rows with --devices {devices}: {text_of(done.stderr)}")
                return None, None
            spans = [span for span in spans_on(trace, stream) if "%*%" in span[0]]
        if len(spans) < 2:
            return 0.0, done.stdout
        return 2.0 * n ** 3 * (len(spans) - 1) / ((spans[-1][2] - spans[1][1]) * 1e-6), done.stdout

    def products(self):
        rows = self.result["products"] = []
        for n in self.options.products:
            for precision in ("double", "single"):
                there, output = self.product(n, precision, self.options.device, f"{self.options.device} compute")
                here, expected = self.product(n, precision, "cpu", "compute")
                if there is None or here is None:
                    self.left_out.append(f"products of {n} rows, {precision}")
                    continue
                same = output == expected
                rows.append({"rows": n, "precision": precision, "runs_on_device": there > 0, "same": same,
                             "flop_per_s": round(there), "processor_flop_per_s": round(here)})
                if not same:
                    self.failures.append(f"a product of {n} rows, {precision}, differs")

    def expressions(self):
        rows = self.result["expressions"] = []
        bench = os.path.join(self.options.build, "heddle-bench")
        if self.options.device != "opencl:0" or not os.path.exists(bench):
            why = f"{bench} is not built" if self.options.device == "opencl:0" else "they are measured on opencl:0 alone"
            self.left_out.append(f"expressions: {why}")
            return
        with tempfile.TemporaryFile() as told:
            process = subprocess.Popen([bench, "devices", "--json", "--cells", str(self.options.cells),
                                        "--only", self.options.expressions], stdout=told, stderr=subprocess.PIPE)
            try:
                errors = process.communicate(timeout=max(1, EXPRESSIONS_SHARE * self.clock.left()))[1]
                if process.returncode != 0:
                    self.failures.append(f"expressions: {text_of(errors)}")
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                self.left_out.append("expressions behind those that are there")
            told.seek(0)
            # The last line may be cut.
            rows += [json.loads(line) for line in told.read().split(b"\n")[:-1] if line.startswith(b"{")]

    def outcome(self, verb, path, devices):
        """Of a run: exit code, hash of output and files, and what ran on the device. None if time was over."""
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as beside:
            words = [self.heddle, *verb.split(), "--devices", devices]
            trace = os.path.join(beside, "trace.json")
            words += ["--trace", trace]
            in_project = path.endswith(".args")
            if in_project:
                with open(path) as file:
                    words += shlex.split(file.readline())
            else:
                words.append(os.path.abspath(path))
            start = time.monotonic()
            done = run(words, ROOT if in_project else folder, self.clock, MOST_SECONDS)
            if done is None:
                return None
            digest = hashlib.sha256(done.stdout)
            for parent, folders, files in os.walk(folder):
                folders.sort()
                for name in sorted(files):
                    digest.update(os.path.relpath(os.path.join(parent, name), folder).encode())
                    with open(os.path.join(parent, name), "rb") as file:
                        digest.update(file.read())
            warnings = [line for line in text_of(done.stderr).splitlines() if "in place of a device" in line]
            return {"code": done.returncode, "sha256": digest.hexdigest(), "seconds": round(time.monotonic() - start, 2),
                    "on_device": len(spans_on(trace, f"{devices} compute")), "errors": text_of(done.stderr),
                    "warnings": warnings}

    def script(self, path, variants):
        """The row of a script, or None if time was over."""
        expected = self.outcome(VARIANTS[0], path, "cpu")
        row = {"script": os.path.splitext(os.path.basename(path))[0], "same": True, "runs": []}
        for variant in variants:
            actual = self.outcome(variant, path, self.options.device) if expected is not None else None
            if actual is None:
                return None
            same = (actual["code"], actual["sha256"]) == (expected["code"], expected["sha256"]) and actual["code"] == 0
            row["same"] &= same
            told = {"variant": variant, "same": same, "operators_on_device": actual["on_device"], "seconds": actual["seconds"]}
            if not same:
                told.update(code=actual["code"], sha256=actual["sha256"], errors=actual["errors"])
            if actual["warnings"]:
                told["warnings"] = actual["warnings"]
            row["runs"].append(told)
        return {**row, "sha256": expected["sha256"], "processor_code": expected["code"],
                "processor_seconds": expected["seconds"]}

    def scripts(self):
        paths = [name if os.path.exists(name) else os.path.join(CASES, name) for name in self.options.scripts]
        if not paths:
            names = sorted(os.listdir(CASES))
            # Whole algorithms say most; those of examples/ take the fewest kernels.
            ways = [lambda name: name.startswith("example_"), lambda name: name.startswith("bench_"), lambda name: True]
            names.sort(key=lambda name: next(place for place, way in enumerate(ways) if way(name)))
            paths = [os.path.join(CASES, name) for name in names if name.endswith((".args", ".dml"))]
        for path in paths:
            if not os.path.exists(path):
                with_ending = [path + ending for ending in (".dml", ".args") if os.path.exists(path + ending)]
                if not with_ending:
                    sys.exit(f"deploy/device: there is no script {path}")
        paths = [next(p for p in (path, path + ".dml", path + ".args") if os.path.exists(p)) for path in paths]
        rows = self.result["scripts"] = {}
        for variants in (VARIANTS[:1], VARIANTS[1:]):
            with concurrent.futures.ThreadPoolExecutor(max(1, (os.cpu_count() or 2) // 2)) as pool:
                for path, row in zip(paths, pool.map(lambda path: self.script(path, variants), paths)):
                    name = os.path.splitext(os.path.basename(path))[0]
                    if row is None:
                        self.left_out.append(f"script {name} ({', '.join(variants)})")
                        continue
                    if not row["same"]:
                        self.failures.append(f"script {name}")
                    if name in rows:
                        rows[name]["same"] &= row["same"]
                        rows[name]["runs"] += row["runs"]
                    else:
                        rows[name] = row
        self.result["scripts"] = list(rows.values())


def processor():
    try:
        with open("/proc/cpuinfo") as file:
            return next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.machine()


def main():
    options = argparse.ArgumentParser(prog="deploy/device", description=__doc__,
                                      formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("scripts", nargs="*", metavar="SCRIPT", help="names in tests/scripts/cases, or files")
    options.add_argument("--device", default="opencl:0")
    options.add_argument("--out", default="device.json", help="where the JSON goes; - for standard output")
    options.add_argument("--seconds", type=float, default=230, help="most time of all parts")
    options.add_argument("--build", default=os.path.join(ROOT, "build", "release"), help="the folder of the binaries")
    options.add_argument("--parts", default=",".join(PARTS), help="some of " + ",".join(PARTS))
    options.add_argument("--kernels", default="*Device*", help="which tests, as --gtest_filter has it")
    options.add_argument("--expressions", default="", help="those with this text alone")
    options.add_argument("--cells", type=int, default=10_000_000, help="of the matrices in expressions")
    options.add_argument("--products", default="1000,2000,4000", help="rows of the products")
    chosen = options.parse_args()
    parts = chosen.parts.split(",")
    if not set(parts) <= set(PARTS):
        options.error(f"--parts takes some of {','.join(PARTS)}")
    chosen.products = [int(n) for n in chosen.products.split(",")]
    chosen.build = os.path.abspath(chosen.build)
    clock = Clock(chosen.seconds)
    report = Report(chosen, clock)
    version = run([report.heddle, "version"], ROOT, Clock(120))
    if version is None or version.returncode != 0:
        sys.exit(f"deploy/device: {report.heddle} does not run; without --no-build it is built")
    report.result = {"heddle": text_of(version.stdout).splitlines()[0], "processor": processor(),
                     "cores": os.cpu_count(), "device": chosen.device}
    why = report.devices()
    if not why:
        for part in parts:
            getattr(report, part)()
    report.result.update(why=why, seconds=clock.passed(), left_out=report.left_out, failures=report.failures)
    told = json.dumps(report.result, indent=1) + "\n"
    if chosen.out == "-":
        sys.stdout.write(told)
    else:
        with open(chosen.out, "w") as file:
            file.write(told)
    print_summary(report, why, chosen.out)
    return 3 if why else 1 if report.failures else 0


def print_summary(report, why, out):
    def say(line):
        print(line, file=sys.stderr)
    if why:
        say(f"deploy/device: {why}")
    result = report.result
    if "kernels" in result:
        say(f"kernels: {result['kernels']['tests']} tests, {len(result['kernels']['failed'])} failed")
    for row in result.get("products", []):
        place = f"{row['flop_per_s'] / 1e9:.1f} GFLOP/s there" if row["runs_on_device"] else "left to the processor"
        say(f"product of {row['rows']} rows, {row['precision']}: {place}, {row['processor_flop_per_s'] / 1e9:.1f} by the "
            f"processor, {'the same' if row['same'] else 'OTHER'} bytes")
    for row in result.get("expressions", []):
        say(f"{row['case']}: {row['device_ms']} ms there, {row['host_ms']} by the processor")
    if "scripts" in result:
        runs = [one for row in result["scripts"] for one in row["runs"]]
        say(f"scripts: {len(result['scripts'])} in {len(runs)} runs, {sum(not one['same'] for one in runs)} with other bytes; "
            f"{sum(one['operators_on_device'] for one in runs)} operators ran on the device")
    if report.left_out:
        say(f"left out: {len(report.left_out)}, among them {report.left_out[0]}")
    for failure in report.failures[:10]:
        say(f"FAILED: {failure}")
    say(f"{result['seconds']} s; all of it is in {out}" if out != "-" else f"{result['seconds']} s")


if __name__ == "__main__":
    sys.exit(main())
