# SPDX-License-Identifier: Apache-2.0
"""Which files cmake/batches.py compiles as one."""
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

BATCHES = Path(__file__).parents[2] / 'cmake' / 'batches.py'


class Project:
    """Sources and headers in a folder of its own, and which files of them are in one batch."""

    def __init__(self, folder):
        self.folder = folder
        self.sources = []

    def header(self, name, text):
        path = self.folder / f'{name}.h'
        path.parent.mkdir(exist_ok=True)
        path.write_text(f'// A header.\n{text}')

    def source(self, name, before='', inside='', behind=''):
        """A file with this text before, in, and behind its anonymous namespace."""
        path = self.folder / f'{name}.cc'
        path.parent.mkdir(exist_ok=True)
        path.write_text(f'// A file.\n{before}\nnamespace heddle {{\nnamespace {{\n\n{inside}\n}}  // namespace\n\n{behind}\n'
                        '}  // namespace heddle\n')
        self.sources.append(path)

    def batches(self):
        lines = ''.join(f'target {source}\n' for source in self.sources)
        output = subprocess.run([sys.executable, BATCHES, self.folder], input=lines, text=True, check=True,
                                capture_output=True).stdout
        batches = []
        for line in output.splitlines():
            target, *files = line.split()
            assert target == 'target'
            batches.append({Path(file).stem for file in files})
        return batches

    def together(self, first, second):
        return any({first, second} <= batch for batch in self.batches())


@pytest.fixture
def project():
    with tempfile.TemporaryDirectory() as folder:
        yield Project(Path(folder))


PAIRS = 'std::vector<std::pair<int, int>> Pairs(int rows) { return {}; }'


@pytest.mark.parametrize('together, other', [
    (True, dict(behind='// Pairs and kRoom are no names of this file.\nint Mentioned() { return 1; }')),
    (False, dict(inside='int Pairs = 1;')),
    (False, dict(behind='int CallsOuter() { return Pairs(2); }')),  # Another function of this name.
    (False, dict(behind='using Plain = int;')),
    (False, dict(behind='using other::Plain;')),
    (False, dict(before='#define HEDDLE_ONCE 1\n')),  # What a macro is to others is not looked for.
    (False, dict(before='#include <linux/tcp.h>\n')),
])
def test_names_do_not_meet(project, together, other):
    project.source('a/plain', inside=PAIRS, behind='int Plain() { return Pairs(1).size(); }')
    project.source('a/other', **other)
    assert project.together('plain', 'other') == together


@pytest.mark.parametrize('name', ['Parts final : Base {}', 'Piece {}'])
def test_names_of_headers_that_headers_include(project, name):
    project.header('a/inner', 'struct Parts {\n  int count;\n};\nstruct Piece;  // a/piece.h\n')
    project.header('a/outer', '#include "a/inner.h"\n')
    project.source('a/includes', before='#include "a/outer.h"', behind='int Includes() { return 1; }')
    project.source('a/own', inside=f'struct {name};')
    project.source('a/plain', behind='int Plain() { return 1; }')
    assert not project.together('includes', 'own')
    assert project.together('includes', 'plain')


def test_eight_files_are_a_batch_and_small_ones_of_folders_are_joined(project):
    for number in range(1, 10):
        project.source(f'b/many_{number}', behind=f'int Many{number}() {{ return {number}; }}')
    project.source('c/small', behind='int Small() { return 1; }')
    assert project.batches() == [{f'many_{number}' for number in range(1, 9)}, {'many_9', 'small'}]


def test_namespaces_named_testing(project):
    project.header('a/support', 'namespace heddle::testing {\n}\n')
    project.source('a/plain', behind='int Plain() { return 1; }')
    project.source('a/supported', before='#include "a/support.h"', behind='int Supported() { return 1; }')
    assert not project.together('plain', 'supported')  # testing:: is another namespace there.
