# SPDX-License-Identifier: Apache-2.0
"""Texts with typing errors, their distances and corrections; matches of addresses; duplicates by word vectors; all by
plain loops. Writes data/cities.csv as well."""
import itertools

import numpy as np

from reference import HERE, save

random = np.random.default_rng(5)
NAMES = ["Vienna", "Graz", "Linz", "Salzburg", "Innsbruck", "Klagenfurt", "Villach", "Bregenz"]


def misspelled(name):
    """One character replaced, inserted or deleted, or two neighbors swapped."""
    i = int(random.integers(1, len(name) - 1))
    kind, letter = int(random.integers(4)), chr(int(random.integers(97, 123)))
    return [name[:i] + letter + name[i + 1:], name[:i] + letter + name[i:], name[:i] + name[i + 1:],
            name[:i] + name[i + 1] + name[i] + name[i + 2:]][kind]


cities = [NAMES[int(i)] for i in random.integers(len(NAMES), size=120)]
cities = [misspelled(c) if i % 8 == 3 else c for i, c in enumerate(cities)]
(HERE.parent / "data" / "cities.csv").write_text("city\n" + "\n".join(cities) + "\n")


def distance(a, b):
    """Optimal string alignment, cell by cell."""
    table = np.add.outer(np.arange(len(a) + 1), np.arange(len(b) + 1))
    for i, j in itertools.product(range(1, len(a) + 1), range(1, len(b) + 1)):
        table[i, j] = min(table[i - 1, j] + 1, table[i, j - 1] + 1, table[i - 1, j - 1] + (a[i - 1] != b[j - 1]))
        if i > 1 and j > 1 and a[i - 1] == b[j - 2] and a[i - 2] == b[j - 1]:
            table[i, j] = min(table[i, j], table[i - 2, j - 2] + 1)
    return table[-1, -1]


words = list(dict.fromkeys(cities))
counts = [cities.count(w) for w in words]
distances = np.array([[distance(a, b) for b in words] for a in words])
becomes = []
for w, word in enumerate(words):
    near = [(distances[w, v], -counts[v], v) for v in range(len(words))
            if counts[w] <= 0.03 * len(cities) and counts[v] > counts[w] and distances[w, v] <= 2]
    becomes.append(min(near)[2] if near else w)
corrected = [1 + words.index(words[becomes[words.index(c)]]) for c in cities]

ADDRESSES = ["main street 12,vienna,1010", "main street 13,vienna,1010", "mian street 12,wien,1010",
             "hill road 3,graz,8010", "hill road 3,graz,8010", "hill rd 3,graz,8011", "low alley 1,linz,4020"]
rows = [a.split(",") for a in ADDRESSES]


def groups(columns, thresholds):
    """The largest number of the rows that a row is connected with by matches."""
    def similar(a, b):
        return len(set(a) & set(b)) / len(set(a) | set(b))

    n = len(rows)
    matches = np.array([[i != j and all(similar(rows[i][c], rows[j][c]) >= t for c, t in zip(columns, thresholds))
                         for j in range(n)] for i in range(n)])
    reached = np.linalg.matrix_power(matches + np.eye(n), n) > 0
    return [max(np.flatnonzero(r)) + 1 if m.any() else 0 for r, m in zip(reached, matches)]


VOCABULARY = ["main", "street", "vienna", "hill", "road", "graz", "low", "linz"]
vectors = random.standard_normal((len(VOCABULARY), 5)).round(3)
embedded = np.array([np.mean([vectors[VOCABULARY.index(w)] for w in " ".join(r).split() if w in VOCABULARY], axis=0)
                     for r in rows])
norms = np.linalg.norm(embedded, axis=1)
cosines = embedded @ embedded.T / np.outer(norms, norms)
closeness = 1 / (1 + np.linalg.norm(embedded[:, None] - embedded, axis=2))
earlier = np.tril(np.ones((len(rows), len(rows))), -1)
save("frames", distances, corrected, counts, groups([0, 1, 2], [0.8, 0.9, 1]), groups([0, 2], [0.6, 0.8]), vectors,
     ((cosines >= 0.8) * earlier).any(axis=1), ((closeness >= 0.6) * earlier).any(axis=1),
     [1 + i for i in sorted(range(len(cities)), key=lambda i: cities[i])],
     [1 + i for i in sorted(range(len(cities) - 1, -1, -1), key=lambda i: cities[i])[::-1]])
