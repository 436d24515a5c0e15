# SPDX-License-Identifier: Apache-2.0
"""Says which C++ files of a target are compiled as one.

    batches.py SOURCE_FOLDER < lines "TARGET FILE", the files of a folder one after the other

prints a line "TARGET FILE FILE ..." for each batch of two files or more. Files of a batch are one translation unit, so that
names which each has for itself must not meet: a file comes into a batch only if no name of its own stands anywhere in
the others or in the headers that they include, and the other way round.
"""
import re
import sys
from pathlib import Path

FILES_OF_BATCH = 8

# What stands behind a name in a line that declares it, from the first of these on.
BEHIND = re.compile(r'("| = | : | final |//).*')
# Lines that declare no name: using-directives, heads of templates, namespaces, operators, destructors and members.
NO_NAME = re.compile(r'(using [^=]*::|template *$|namespace)|operator|::~?\w+ *$')
OUTSIDE = re.compile(r'^(?:using \w+ =|(?:struct|class|enum)[^\n]*{|static |constexpr |inline )[^\n]*', re.M)
INSIDE = re.compile(r'^namespace {\n(.*?)\n}  // namespace\n', re.M | re.S)
USING = re.compile(r'^using [\w:]*::(\w+);', re.M)
INCLUDE = re.compile(r'^#include "([^"\n]*)', re.M)
NAMESPACE_TESTING = re.compile(r'^namespace [a-z:]*::testing {', re.M)
# A macro would reach the files behind it; headers of Linux declare what those of the C library do.
ALONE = re.compile(r'^#(define |include <linux/)', re.M)


def declared_names(text):
    """The names that lines at the left edge of `text` declare. Macros, which have no small letters, are none."""
    names = set()
    for line in re.findall(r'^[A-Za-z][^\n]*', text, re.M):
        line = BEHIND.sub('', line).replace(';', '')
        for _ in range(3):
            line = re.sub(r'<[^<>]*>', '', line)
        line = re.sub(r'[({].*', '', line)
        name = re.search(r'(\w*[a-z]\w*)\W*$', line)
        if name and not NO_NAME.search(line):
            names.add(name[1])
    return names


def own_names(text):
    """The names that a source file has for itself: those in its anonymous namespaces, types, aliases and static functions
    outside of them, and what it takes by name from another namespace."""
    names = declared_names('\n'.join(OUTSIDE.findall(text))) | set(USING.findall(text))
    for inside in INSIDE.findall(text):
        names |= declared_names(inside)
    return names


class Headers:
    """The names that headers of the project declare, with those that they include; `::testing` if one has a namespace
    of this name."""

    def __init__(self, folder):
        self.folder = folder
        self.names = {}

    def included(self, text):
        names = set()
        for header in INCLUDE.findall(text):
            if header not in self.names:
                self.names[header] = set()  # Where headers include each other.
                path = self.folder / header
                if path.exists():
                    inside = path.read_text()
                    self.names[header] = declared_names(inside) | self.included(inside) | testing_of(inside)
            names |= self.names[header]
        return names


def testing_of(text):
    return {'::testing'} if NAMESPACE_TESTING.search(text) else set()


class Batch:
    def __init__(self, file, text, headers):
        code = re.sub(r'^ *//[^\n]*', '', text, flags=re.M)
        included = headers.included(text) | testing_of(text)
        self.files = [file]
        self.own = own_names(text)
        self.words = set(re.findall(r'\w+', code)) | included
        self.has_testing = '::testing' in included

    def meets(self, other):
        return bool(self.own & other.words or other.own & self.words) or self.has_testing != other.has_testing

    def take(self, other):
        self.files += other.files
        self.own |= other.own
        self.words |= other.words


def join(batches, batch):
    """Adds `batch` to the first of `batches` that has room for it and whose names it does not meet; else to the list."""
    for other in batches:
        if len(other.files) + len(batch.files) <= FILES_OF_BATCH and not other.meets(batch):
            other.take(batch)
            return
    batches.append(batch)


def form_batches(files, headers):
    """Batches of files, first within each folder, so that a new file changes no other folder's, then of small batches."""
    folders = {}
    for file in files:
        text = Path(file).read_text()
        if not ALONE.search(text):
            join(folders.setdefault(Path(file).parent, []), Batch(file, text, headers))
    batches = []
    of_folders = [batch for folder in folders.values() for batch in folder]
    for batch in sorted(of_folders, key=lambda batch: len(batch.files) <= FILES_OF_BATCH // 2):
        join(batches, batch)
    return [batch.files for batch in batches if len(batch.files) > 1]


def main():
    headers = Headers(Path(sys.argv[1]))
    targets = {}
    for line in sys.stdin:
        target, file = line.split()
        targets.setdefault(target, []).append(file)
    for target, files in targets.items():
        for batch in form_batches(files, headers):
            print(target, *batch)


if __name__ == '__main__':
    main()
