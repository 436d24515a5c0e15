# SPDX-License-Identifier: Apache-2.0
"""Every snippet of docs/manual runs, and shows what the page says.

A block of sh, dml or python runs in the folder of its page, in the order of the page; a block of text behind it is what
it prints. Blocks of python share their variables.
"""

import contextlib
import io
import os
import pathlib
import re
import subprocess

import pytest

import heddle
from heddle._cluster import program

ROOT = pathlib.Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "manual").glob("*.md"))
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```\n(?:\n*^```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)


def run_shell(text, folder):
    tools = folder / "tools"
    if not tools.exists():
        tools.mkdir()
        (tools / "heddle").symlink_to(os.path.realpath(program()))
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "HOME": str(folder),
                   "XDG_STATE_HOME": str(folder / "state"), "XDG_CACHE_HOME": str(folder / "cache")}
    result = subprocess.run(["bash", "-c", text], cwd=folder, env=environment, capture_output=True, text=True)
    return result.stdout + result.stderr, result.returncode


def run_python(text, names):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(text, "manual", "exec"), names)
    return printed.getvalue()


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_snippets(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    blocks = list(BLOCK.finditer(page.read_text()))
    for block in blocks:
        language, text, expected = block[1], block[2], block[3]
        if language == "text":
            continue
        if language == "sh":
            shown, code = run_shell(text, tmp_path)
            assert code == 0 or "error:" in (expected or ""), f"{text}\n{shown}"
        elif language == "dml":
            texts = []
            heddle.run(text, directory=tmp_path, print=texts.append)
            shown = "".join(texts)
        elif language == "python":
            needed = re.findall(r"^(?:import|from) (sklearn|pandas|polars|scipy)", text, re.MULTILINE)
            for library in needed:
                pytest.importorskip(library)
            shown = run_python(text, names)
        else:
            pytest.fail(f"{page.name} has a block of {language}")
        if expected is not None:
            assert shown == expected, f"{page.name}:\n{text}"


def test_the_reference_has_every_function():
    made = subprocess.run([str(ROOT / "docs" / "manual" / "make-reference"), program()], capture_output=True, text=True,
                          check=True).stdout
    names = re.findall(r"^### (\S+)$", made, re.MULTILINE)
    assert len(names) == len(set(names)) > 330
    assert set(heddle._engine.library_functions()) <= set(names) and {"sum", "order", "list"} <= set(names)
