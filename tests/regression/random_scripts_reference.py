# SPDX-License-Identifier: Apache-2.0
"""Random scripts, run by Heddle in several ways and computed once more by NumPy.

    random_scripts_reference.py HEDDLE FOLDER FIRST_SEED COUNT

Every way must write the same bytes, and NumPy must find the same cells to 1e-8 of the largest. Prints the differences
and leaves the script of such a seed in FOLDER/SEED; exit code 1 when there are any.
"""
import filecmp
import os
import random
import re
import shutil
import subprocess
import sys

import numpy as np

WAYS = {
    "off": "run --fusion off",
    "cost": "run --fusion-strict",
    "all": "run --threads 1 --fusion all --fusion-strict",
    "no-redundancy": "run --fusion no-redundancy --fusion-strict",
    "random": "run --fusion-seed 7 --fusion-strict",
    "sim": "sim --workers 3 --min-distributed-bytes 0 --fusion-strict",
}

# Kinds of values: M is n x k, N n x w, C n x 1, R 1 x k, P k x w, G k x k, s a scalar. <M>, <M1> are expressions of a
# kind, <M!> is an input of it (functions that jump must see the same bits on both sides), <M~> also what is repeated
# beside it, <n>, <k>, <w> are the sizes. What DML and Python write differently, python_text translates.
CELLS = """(<T> + <T~>)|(<T> - <T~>)|(<T> * <T~>)|(<T> * <T1>)|(<T> / (<T~> ^ 2 + 1))|exp(-abs(<T>))|log(abs(<T>) + 1)
sqrt(abs(<T>))|abs(<T>)|sin(<T>)|cos(<T>)|tanh(<T>)|sigmoid(<T>)|(<T>) ^ 2|(<T>) ^ 3|atan(<T>)|(1 - <T>)|(-(<T>))
sinh(min(<T>, 2))|(abs(<T>) + 0.1) ^ 0.7|(abs(<T>) + 0.5) ^ (-1.2)|round(<T!>)|floor(<T!>)|ceil(<T!>)|sign(<T!>)
min(<T>, <T~>)|max(<T>, <T~>)|ifelse(greater(<T!>, 0.1), <T>, <s>)|ifelse(greater(<T!>, 0.1), <T>, <T1>)
greater(<T!>, 0)|nonzero(<T!>)|(nonzero(<T!>) * <T>)|(<T!> * <T>)"""
SHAPED = {
    "M": """(<C> %*% <R>)|((<N> %*% t(<P>)) / <w>)|((<M> %*% <G>) / <k>)|(cumsum(<M>) / <n>)|rev(<M>)|t(t(<M>))
        (<M> %*% diag(t(<R>)))|outer(<C>, <R>, "*")|outer(<C>, <R>, "-")|replace(<M!>, 0, 0.25)""",
    "N": """((<M> %*% <P>) / <k>)|((<M> %*% <P>) / <k>)|((<M> %*% <G> %*% <P>) / <k> ^ 2)|((<M!> %*% <P>) / <k>)""",
    "C": """(rowSums(<M>) / <k>)|rowMeans(<M>)|rowMaxs(<M>)|rowMins(<N>)|rowSds(<M>)|rowVars(<M>)
        ((<M> %*% t(<R>)) / <k>)
        (rowSums(<M> * (<N> %*% t(<P>))) / <w> / <k>)|(rowSums(<N> * <N1>) / <w>)
        (cumsum(<C>) / <n>)|(rowSums(<M!>) / <k>)""",
    "R": """(colSums(<M>) / <n>)|colMeans(<M>)|colMaxs(<M>)|colMins(<M>)|colSds(<M>)|colVars(<M>)
        ((t(<C>) %*% <M>) / <n>)|t((t(<M>) %*% <C>) / <n>)|((t(<C>) %*% <M!>) / <n>)""",
    "P": """((t(<M>) %*% <N>) / <n>)|((t(<M!>) %*% <N>) / <n>)|((t(<M>) %*% (<N> * <C>)) / <n>)""",
    "G": """((t(<M>) %*% <M1>) / <n>)|((t(<M!>) %*% (<M> * <C>)) / <n>)""",
    "s": """(sum(<M>) / <n> / <k>)|mean(<M>)|min(min(<M>), 1)|max(max(<M>), 0)|(trace(<G>) / <k>)
        (as.scalar(t(<C>) %*% <C1>) / <n>)|(sum((<M>) ^ 2) / <n> / <k>)
        (sum(nonzero(<M!>) * (<M> - <N> %*% t(<P>)) ^ 2) / <n> / <k> / <w>)
        (sum(<M!> * log((<N> %*% t(<P>)) ^ 2 + 1)) / <n> / <k> / <w>)|(sum(<C>) / <n>)|sd(<C>)|var(<M>)
        (sum((nonzero(<M!>) * (<N> %*% t(<P>))) %*% <P>) / <n> / <k> / <w>)
        (sum(removeEmpty(<M!> * (<M>))) / <n> / <k>)""",
}
# A shape twice in an expression, as X in t(X) %*% (X %*% V), is a variable.
TWICE = {
    "P": "((t(<M=>) %*% (<M=> %*% <P>)) / <n> / <k>)|((t(<M=>) %*% ((<M=> %*% <P>) - <N>)) / <n> / <k>)"
         "|((t(<M=>) %*% ((<M=> %*% <P>) * <C>)) / <n> / <k>)",
    "G": "((t(<M=>) %*% <M=>) / <n>)",
    "C": "(rowSums(<M=> * <M=>) / <k>)",
    "M": "(<M=> - rowMeans(<M=>))|(exp(-abs(<M=>)) / (rowSums(exp(-abs(<M=>))) + 1))",
}


def alternatives(text):
    return [part.strip() for part in re.split(r"[|\n]", text) if part.strip()]


def columnwise(function):
    return lambda x: function(x, axis=0, keepdims=True)


def rowwise(function):
    return lambda x: function(x, axis=1, keepdims=True)


def extreme(pair, full):
    return lambda *arguments: pair(*arguments) if len(arguments) == 2 else full(*arguments)


def deviations(function):
    return lambda x, **where: function(x, ddof=1, **where)


AGGREGATES = dict(Sums=np.sum, Means=np.mean, Maxs=np.max, Mins=np.min, Sds=deviations(np.std), Vars=deviations(np.var))
LANGUAGE = {
    **{name: getattr(np, name) for name in "exp log sqrt abs sin cos tanh sinh floor ceil sign sum mean trace".split()},
    "atan": np.arctan, "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "round": lambda x: np.floor(x) + (x - np.floor(x) >= 0.5),
    "min": extreme(np.minimum, np.min), "max": extreme(np.maximum, np.max), "ifelse": np.where,
    "greater": lambda x, y: (x > y) * 1.0, "nonzero": lambda x: (x != 0) * 1.0, "t": np.transpose,
    "rev": lambda x: x[::-1], "cumsum": lambda x: np.cumsum(x, axis=0), "diag": lambda x: np.diag(x[:, 0]),
    "outer": lambda x, y, operator: x * y if operator == "*" else x - y,
    "replace": lambda x, pattern, value: np.where(x == pattern, value, x), "removeEmpty": lambda x: x,
    "as_scalar": lambda x: x[0, 0], "sd": deviations(np.std), "var": deviations(np.var), "np": np,
    **{f"row{name}": rowwise(function) for name, function in AGGREGATES.items()},
    **{f"col{name}": columnwise(function) for name, function in AGGREGATES.items()},
}


def dml_text(text):
    text = re.sub(r"replace\((\w+), 0, 0.25\)", r"replace(target=\1, pattern=0, replacement=0.25)", text)
    text = text.replace("removeEmpty(", 'removeEmpty(margin="rows", target=')
    return text


def python_text(text):
    return text.replace("%*%", "@").replace("^", "**").replace("as.scalar", "as_scalar")


class Script:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        pick = self.random.choice
        self.n, self.w = pick([2, 7, 64, 65, 300, 1000]), pick([1, 3, 9, 20, 64])
        self.k = pick([2, 3, 5, 6, 7, 9, 10, 17, 40, 100])
        self.values = {kind: [] for kind in "MNCRPGs"}
        self.inputs, self.dml, self.python, self.depth, self.count = {}, [], [], 0, 0
        for kind, density in zip("MMMMNNCCRPG", [1, 1, 0.02, 0.2, 1, 0.1, 1, 0.3, 1, 1, 1]):
            cells = self.numbers.uniform(-1, 1, self.shape(kind)) * (self.numbers.random(self.shape(kind)) < density)
            self.inputs[f"I{len(self.inputs)}"] = (kind, cells)
            self.values[kind].append(f"I{len(self.inputs) - 1}")
        self.values["s"] += ["0.5", "2", "(-1.5)", "0", "1"]
        for _ in range(self.random.randint(4, 12)):
            self.add_statement()

    def shape(self, kind):
        rows = {"M": self.n, "N": self.n, "C": self.n, "R": 1, "P": self.k, "G": self.k}
        columns = {"M": self.k, "N": self.w, "C": 1, "R": self.k, "P": self.w, "G": self.k}
        return rows[kind], columns[kind]

    def emit(self, dml, python):
        self.dml.append("  " * self.depth + dml_text(dml))
        if python:
            self.python.append("  " * self.depth + python_text(python))

    def value(self, kind):
        return self.random.choice(self.values[kind][-5:] if self.random.random() < 0.6 else self.values[kind])

    def beside(self, kind):
        kinds = {"M": "MMCRs", "N": "NNCs"}.get(kind, kind + kind + "s")
        return self.value(self.random.choice(kinds))

    def expression(self, kind, depth):
        if depth <= 0:
            return self.value(kind)
        tables = [table for table in (SHAPED.get(kind), TWICE.get(kind)) if table]
        cells = kind != "s" and self.random.random() < 0.6
        template = self.random.choice(alternatives(CELLS if cells else self.random.choice(tables)))
        template = template.replace("<T", "<" + kind)
        filled = {"n": str(self.n), "k": str(self.k), "w": str(self.w)}

        def fill(match):
            hole = match.group(1)
            if hole not in filled:
                how = hole[1:]
                inputs = [name for name, (of, _) in self.inputs.items() if of == hole[0]]
                filled[hole] = (self.random.choice(inputs) if how == "!"
                                else self.beside(hole[0]) if how == "~"
                                else self.variable(hole[0], depth - 1) if how == "="
                                else self.expression(hole[0], self.random.randint(0, depth - 1)))
            return filled[hole]
        return re.sub(r"<(\w[0-9!~=]?)>", fill, template)

    def new(self, kind):
        self.count += 1
        return f"{kind}{self.count}v"

    def assign(self, kind, expression):
        name = self.new(kind)
        self.emit(f"{name} = {expression}", f"{name} = {expression}")
        return name

    def variable(self, kind, depth):
        expression = self.expression(kind, depth)
        return expression if re.fullmatch(r"\w+", expression) else self.assign(kind, expression)

    def add_statement(self):
        pick = self.random.choice
        others = "cells part part loop loop branch columns".split()
        statement = pick(["value"] * 8 + others if self.depth < 2 else ["value"])
        kind = pick("MMMNNCCCRRPGss")
        if statement == "value":
            self.values[kind].append(self.assign(kind, self.expression(kind, self.random.randint(1, 4))))
            return
        if statement == "cells":  # Some cells of a copy are assigned.
            kind = pick("MNC")
            name, source = self.assign(kind, f"{self.value(kind)} + 0"), self.variable(kind, 2)
            rows, columns = (sorted(self.random.randint(1, size) for _ in range(2)) for size in self.shape(kind))
            here = f"{rows[0]}:{rows[1]},{columns[0]}:{columns[1]}"
            there = f"{rows[0]}-1:{rows[1]},{columns[0]}-1:{columns[1]}"
            self.emit(f"{name}[{here}] = {source}[{here}]", f"{name}[{there}] = {source}[{there}]")
            self.values[kind].append(name)
            return
        if statement == "part":  # A row or a column.
            kind, source = pick("CR"), self.variable("M", 2)
            name, at = self.new(kind), self.random.randint(1, self.k if kind == "C" else self.n)
            if kind == "C":
                self.emit(f"{name} = {source}[,{at}]", f"{name} = {source}[:,{at}-1:{at}]")
            else:
                self.emit(f"{name} = {source}[{at},]", f"{name} = {source}[{at}-1:{at},:]")
            self.values[kind].append(name)
            return
        outer = {of: list(values) for of, values in self.values.items()}
        if statement == "loop":
            turns = self.random.randint(1, 4)
            name, counter = self.assign(kind, f"{self.value(kind)} + 0"), f"i{self.count}"
            self.emit(f"for ({counter} in 1:{turns}) {{", f"for {counter} in range(1, {turns} + 1):")
            self.depth += 1
            self.values[kind].append(name)
            self.values["s"].append(counter)
            for _ in range(self.random.randint(0, 3)):
                self.add_statement()
            text = f"{name} = {name} * 0.5 + {self.expression(kind, 3)} / {counter}"
            self.emit(text, text)
            self.depth -= 1
        elif statement == "branch":
            name = self.new(kind)
            self.emit(f"if (as.scalar(I0[1,1]) > 0) {{", "if I0[0,0] > 0:")
            for head in [None, ("} else {", "else:")]:
                if head:
                    self.emit(*head)
                self.depth += 1
                text = f"{name} = {self.expression(kind, 2)}"
                self.emit(text, text)
                self.depth -= 1
                self.values = {of: list(values) for of, values in outer.items()}
        else:  # Column by column.
            kind, counter = "M", f"j{self.count}"
            name, source = self.new("M"), self.variable("M", 2)
            self.emit(f"{name} = matrix(0, {self.n}, {self.k})", f"{name} = np.zeros(({self.n}, {self.k}))")
            self.emit(f"{pick(['for', 'parfor'])} ({counter} in 1:{self.k}) {{",
                      f"for {counter} in range(1, {self.k} + 1):")
            self.depth += 1
            column = self.new("C")
            self.emit(f"{column} = {source}[,{counter}]", f"{column} = {source}[:,{counter}-1:{counter}]")
            self.values["C"] += [column] * 3
            expression = self.expression("C", 2)
            self.emit(f"{name}[,{counter}] = {expression}", f"{name}[:,{counter}-1:{counter}] = {expression}")
            self.depth -= 1
        self.emit("}", "")
        self.values = outer
        self.values[kind].append(name)

    def results(self):
        return [name for values in self.values.values() for name in values if name.endswith("v")]

    def text(self):
        functions = ("greater = function(matrix[double] x, double y) return (matrix[double] z) { z = x > y }\n"
                     "nonzero = function(matrix[double] x) return (matrix[double] z) { z = x != 0 }\n")
        reads = [f'{name} = read("{name}.csv", format="csv")' for name in self.inputs]
        writes = [f'write({"as.matrix(" + name + ")" if name[0] == "s" else name}, $out + "/{name}.csv", format="csv")'
                  for name in self.results()]
        return functions + "\n".join(reads + self.dml + writes) + "\n"

    def expected(self):
        values = {**LANGUAGE, **{name: cells for name, (_, cells) in self.inputs.items()}}
        with np.errstate(all="ignore"):
            exec("\n".join(self.python), values)
        return {name: np.atleast_2d(np.asarray(values[name], dtype=float)) for name in self.results()}


def differences(heddle, folder, seed):
    script = Script(seed)
    expected = script.expected()
    for name, (_, cells) in script.inputs.items():
        np.savetxt(f"{folder}/{name}.csv", cells, delimiter=",", fmt="%.17g")
    with open(f"{folder}/script.dml", "w") as file:
        file.write(script.text())
    for way, words in WAYS.items():
        os.mkdir(f"{folder}/{way}")
        done = subprocess.run([heddle, *words.split(), "script.dml", "-nvargs", f"out={way}"], cwd=folder, timeout=300,
                              capture_output=True, text=True)
        if done.returncode != 0 or done.stderr:
            yield f"{way}: exit code {done.returncode}\n{done.stderr}"
            return
        for name, cells in expected.items():
            first, file = f"{folder}/off/{name}.csv", f"{folder}/{way}/{name}.csv"
            if way != "off":
                if not filecmp.cmp(first, file, shallow=False):
                    yield f"{way}: other bytes of {name}"
                continue
            found = np.loadtxt(file, delimiter=",", ndmin=2)
            if found.shape != cells.shape:
                yield f"{name} is {found.shape}, NumPy's {cells.shape}"
            elif not np.allclose(found, cells, rtol=1e-8, atol=1e-8 * max(1, np.max(np.abs(cells))), equal_nan=True):
                yield f"{name} differs by {np.max(np.abs(found - cells))} of {np.max(np.abs(cells))}"


def main(heddle, folder, first, count):
    failed = 0
    for seed in range(int(first), int(first) + int(count)):
        here = os.path.join(folder, str(seed))
        os.makedirs(here)
        found = list(differences(heddle, here, seed))
        for difference in found:
            print(f"seed {seed}: {difference}")
        failed += bool(found)
        if not found:
            shutil.rmtree(here)
    print(f"{count} scripts in {len(WAYS)} ways, {failed} with differences")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
