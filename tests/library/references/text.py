# SPDX-License-Identifier: Apache-2.0
"""Words of the Gettysburg address (Nicolay copy, first part), by plain loops over texts, words and pairs."""
import csv
import re

import numpy as np

from reference import HERE, save

texts = (HERE.parent / "data" / "gettysburg.txt").read_text().splitlines()


def edits(reference, hypothesis):
    r, h = reference.split(), hypothesis.split()
    least = list(range(len(h) + 1))
    for i, word in enumerate(r, 1):
        previous, least[0] = least[0], i
        for j, other in enumerate(h, 1):
            previous, least[j] = least[j], min(least[j] + 1, least[j - 1] + 1, previous + (word != other))
    return least[-1] / len(r)


def cooccurrences(texts, most, window, by_distance, symmetric):
    lists = [re.findall("[a-z]+", text.lower())[:most] for text in texts]
    number = {}
    for word in sum(lists, []):
        number.setdefault(word, len(number))
    X = np.zeros((len(number), len(number)))
    for words in lists:
        for i, word in enumerate(words):
            for j in range(max(0, i - window), i):
                X[number[word], number[words[j]]] += 1 / (i - j) if by_distance else 1
    return X + X.T if symmetric else X


def glove(X, start, alpha, eta, x_max, iterations):
    size = start.shape[1] // 2
    W, C = (start[:, :size] - 0.5) / size, (start[:, size:] - 0.5) / size
    parts = [W, C, np.zeros(len(X)), np.zeros(len(X))]
    squares = [np.ones_like(part) for part in parts]
    for _ in range(iterations):
        W, C, a, b = parts
        gradients = [np.zeros_like(part) for part in parts]
        for i, j in zip(*np.nonzero(X)):
            g = min(1, (X[i, j] / x_max) ** alpha) * (W[i] @ C[j] + a[i] + b[j] - np.log(X[i, j]))
            for gradient, k, value in zip(gradients, (i, j, i, j), (g * C[j], g * W[i], g, g)):
                gradient[k] += value
        squares = [s + g ** 2 for s, g in zip(squares, gradients)]
        parts = [p - eta * g / np.sqrt(s) for p, g, s in zip(parts, gradients, squares)]
    return parts[0] + parts[1]


# Uniform random numbers of rand(seed=7) and rand(seed=8), written by Heddle.
with open(HERE / "text_start.csv") as file:
    start = np.array([[float(cell) for cell in row] for row in csv.reader(file)])
near = cooccurrences(texts[:3], 20, 4, True, True)
i, j = np.nonzero(cooccurrences(texts, 12, 3, False, False))
save("text",
     [edits(a, b) for a, b in zip(texts, texts[1:] + texts[:1])],
     near.sum(axis=1),
     np.column_stack([i + 1, j + 1, cooccurrences(texts, 12, 3, False, False)[i, j]])[::3],
     cooccurrences(texts, 100, 5, True, False).sum(axis=0),
     glove(near, start, 0.75, 0.1, 2, 25))
