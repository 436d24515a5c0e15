# SPDX-License-Identifier: Apache-2.0
"""The graph of near iris flowers by scipy.sparse.csgraph; matches by proposals one after the other."""
import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components, dijkstra

from reference import data, save

X = np.rint(10 * data("iris")[:, :4])
squares = ((X[:, None, :] - X[None, :, :]) ** 2).sum(axis=2)
G = np.where(squares <= 36, np.sqrt(squares), 0)
n = len(G)
label = connected_components(csr_matrix(G), directed=False)[1]
largest = np.array([np.flatnonzero(label == c).max() + 1 for c in label])
directed = np.triu(G)

M = (G > 0) + np.eye(n)
M = M / M.sum(axis=0)
stationary = np.linalg.solve(np.eye(n) - 0.85 * M, np.full(n, 0.15 / n))
p, e, u = np.arange(1, n + 1) / n, 1 + np.arange(n) % 3, 1 / np.arange(1, n + 1)
for _ in range(3):
    p = 0.5 * M @ p + 0.5 * e * (u @ p)


def marriage(lists, values):
    """values[acceptor][proposer]; each proposer goes down its list."""
    n = len(lists)
    place, partner, free = [0] * n, [None] * n, list(range(n))
    while free:
        proposer = free.pop()
        acceptor = lists[proposer][place[proposer]]
        place[proposer] += 1
        if partner[acceptor] is None:
            partner[acceptor] = proposer
        elif values[acceptor][proposer] > values[acceptor][partner[acceptor]]:
            free.append(partner[acceptor])
            partner[acceptor] = proposer
        else:
            free.append(proposer)
    result = np.zeros((n, n))
    for acceptor, proposer in enumerate(partner):
        result[acceptor, proposer] = values[acceptor][proposer]
    return result


def admission(lists, values, capacity):
    place, taken, free = [0] * len(lists), [[] for _ in values], list(range(len(lists)))
    residents, hospitals = np.zeros((len(lists), len(values))), np.zeros((len(values), len(lists)))
    while free:
        r = free.pop()
        if place[r] == len(lists[r]) or lists[r][place[r]] == 0:
            continue
        h = int(lists[r][place[r]]) - 1
        place[r] += 1
        if values[h][r] == 0:
            free.append(r)
            continue
        taken[h].append(r)
        taken[h].sort(key=lambda x: (-values[h][x], x))
        free += taken[h][int(capacity[h]):]
        del taken[h][int(capacity[h]):]
    for h, members in enumerate(taken):
        for r in members:
            residents[r, h], hospitals[h, r] = place[r], values[h][r]
    return residents, hospitals


# Setosa propose to versicolor flowers. How much i likes j is a number without equals in a row.
flowers = np.arange(50)
P = (squares[:50, 50:100] * 50 + flowers) + 1
A = (squares[50:100, :50] * 50 + flowers[::-1]) + 1
lists = np.argsort(-P, axis=1)
ranks = np.argsort(np.argsort(A, axis=1), axis=1) + 1
unordered = marriage(lists, A)
ordered = marriage(lists, ranks)
# Versicolor flowers as residents of five virginica flowers, who take only those near them.
near = squares[50:100, 100:105]
R = np.where(np.arange(5) < 4, np.argsort(near * 5 + np.arange(5), axis=1) + 1, 0)
H = np.where(near.T < 500, 501 - near.T, 0)
residents, hospitals = admission(R, H, [3, 5, 0, 10, 8])
save("graphs", largest, dijkstra(csr_matrix(G), indices=0), dijkstra(csr_matrix(directed), indices=4), stationary, p,
     unordered.argmax(axis=1) + 1, unordered.max(axis=1), ordered.argmax(axis=1) + 1, ordered.max(axis=1),
     residents, hospitals.T)
