# SPDX-License-Identifier: Apache-2.0
"""Examples in the docstrings of lazy arrays, and their types."""

import doctest
import os
import pathlib
import site
import subprocess
import sys
import textwrap

import pytest

import heddle as hd
from heddle import lazy


def documented():
    for name in lazy.__all__:
        value = getattr(lazy, name)
        yield name, value.__doc__
        if isinstance(value, type):
            for member, function in vars(value).items():
                if not member.startswith("_") and getattr(function, "__doc__", None):
                    yield f"{name}.{member}", function.__doc__


@pytest.mark.parametrize("name, text", [(name, text) for name, text in documented() if text and ">>>" in text])
def test_examples(name, text):
    test = doctest.DocTestParser().get_doctest(text, {"__name__": "__main__"}, name, None, 0)
    report = []
    outcome = doctest.DocTestRunner().run(test, out=report.append)
    assert outcome.failed == 0, "".join(report)


def test_everything_public_is_documented():
    missing = [name for name, text in documented() if not text]
    assert missing == []


def test_types_for_users(tmp_path):
    pytest.importorskip("mypy")
    (tmp_path / "user.py").write_text(textwrap.dedent("""
        import heddle as hd
        import numpy as np

        x = hd.array(np.ones((3, 4)))
        scaled: hd.Array = (x - x.mean(0)) / x.std(0)
        other = 2 * x[1:3, 0] + 1
        total: float = float(scaled.sum())
        first, second = hd.compute(scaled, other)
        coefficients = hd.lm(x, np.ones(3), verbose=False)

        @hd.function
        def shifted(p: hd.Array) -> hd.Array:
            return p + 1

        def loss(w: hd.Array) -> hd.Array:
            return ((x @ w) ** 2).mean()

        print(hd.gradient(loss)(np.ones(4)), shifted(hd.rand(3, 4)), coefficients, total)
        wrong: str = x.sum()
    """))
    package = str(pathlib.Path(hd.__file__).parent.parent)
    # mypy finds what is installed by itself.
    environment = os.environ if package in site.getsitepackages() else {**os.environ, "MYPYPATH": package}
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--cache-dir", str(tmp_path / "cache"),
         str(tmp_path / "user.py")], capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert [line.partition("error: ")[2] for line in checked.stdout.splitlines() if "error:" in line] == [
        'Incompatible types in assignment (expression has type "Array", variable has type "str")  [assignment]']
