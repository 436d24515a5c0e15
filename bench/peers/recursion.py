#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The programs of `heddle-bench recursion` in PyTorch, single precision, one JSON object a line: node by node, as a
recursive function is written, and level by level, as batches are made by hand.

    bench/peers/recursion.py [--data sst-train.ptb.gz] [--threads N] [--only TEXT] [--rounds N]

--data: trees in the bracket notation of the Stanford Sentiment Treebank; without it random ones of their sizes.
`made` counts the making of the levels, as Heddle's figures do where a structure is met for the first time; `given` is
for levels that were made before. `train` is an epoch of all trees in batches of 64: loss at every node, dense Adam.
"""
import argparse
import gzip
import json
import os
import random
import sys
import time

PARSER = argparse.ArgumentParser()
PARSER.add_argument("--data", default="")
PARSER.add_argument("--threads", type=int, default=os.cpu_count())
PARSER.add_argument("--only", default="")
PARSER.add_argument("--rounds", type=int, default=3)
OPTIONS = PARSER.parse_args()
os.environ["OMP_NUM_THREADS"] = str(OPTIONS.threads)

import torch

torch.set_num_threads(OPTIONS.threads)
sys.setrecursionlimit(100000)
NONE = -1

# A tree is a list of nodes (left, right, token, label), children before their parents, the root last.


def read_trees(path):
    words, trees = {}, []
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            parts = line.rstrip("\n").replace("(", " ( ").replace(")", " ) ").split(" ")
            parts = [part for part in parts if part]
            nodes, at = [], 0

            def node():
                nonlocal at
                label = int(parts[at + 1])
                at += 2
                if parts[at] == "(":
                    left, right = node(), node()
                    nodes.append((left, right, NONE, label))
                else:
                    nodes.append((NONE, NONE, words.setdefault(parts[at], len(words)), label))
                    at += 1
                at += 1
                return len(nodes) - 1

            if parts:
                node()
                trees.append(nodes)
    return trees


def random_trees(count):
    draw = random.Random(7)

    def grow(nodes, leaves):
        if leaves == 1:
            nodes.append((NONE, NONE, draw.randrange(5000), draw.randrange(5)))
        else:
            split = draw.randrange(1, leaves)
            left = grow(nodes, split)
            right = grow(nodes, leaves - split)
            nodes.append((left, right, NONE, draw.randrange(5)))
        return len(nodes) - 1

    trees = []
    for _ in range(count):
        nodes = []
        grow(nodes, 3 + min(50, int(draw.expovariate(1 / 16))))
        trees.append(nodes)
    return trees


def perfect_tree(height):
    nodes = []

    def grow(h):
        if h == 0:
            nodes.append((NONE, NONE, len(nodes) % 5000, 0))
        else:
            left, right = grow(h - 1), grow(h - 1)
            nodes.append((left, right, NONE, 0))
        return len(nodes) - 1

    grow(height)
    return nodes


def grid(side):
    return [
        (NONE if i == 0 else (i - 1) * side + j, NONE if j == 0 else i * side + j - 1, i * side + j, 0)
        for i in range(side)
        for j in range(side)
    ]


def chain(length):
    return [(i - 1 if i else NONE, NONE, i, 0) for i in range(length)]


class Model:
    """`start` makes the state of nodes without children from their tokens, `join` that of the others from the states
    of their children: tuples of matrices with a row for each node."""

    def __init__(self, hidden, words):
        self.hidden, self.words, self.parameters = hidden, words, []

    def draw(self, *shape):
        parameter = torch.rand(*shape) * 0.16 - 0.08
        self.parameters.append(parameter)
        return parameter


class TreeFC(Model):
    def __init__(self, hidden, words):
        super().__init__(hidden, words)
        self.X, self.W, self.b = self.draw(words, hidden), self.draw(2 * hidden, hidden), self.draw(hidden)

    def start(self, tokens):
        return (self.X[tokens],)

    def join(self, left, right, tokens):
        return (torch.relu(torch.cat((left[0], right[0]), 1) @ self.W + self.b),)


class TreeLSTM(Model):
    def __init__(self, hidden, words):
        super().__init__(hidden, words)
        self.X, self.W, self.U = self.draw(words, hidden), self.draw(hidden, 3 * hidden), self.draw(hidden, 3 * hidden)
        self.Uf, self.b, self.bf = self.draw(hidden, hidden), self.draw(3 * hidden), self.draw(hidden)

    def gates(self, g, below):
        H = self.hidden
        c = torch.sigmoid(g[:, :H]) * torch.tanh(g[:, 2 * H :]) + below
        return torch.sigmoid(g[:, H : 2 * H]) * torch.tanh(c), c

    def start(self, tokens):
        return self.gates(self.X[tokens] @ self.W + self.b, 0)

    def join(self, left, right, tokens):
        below = torch.sigmoid(left[0] @ self.Uf + self.bf) * left[1] + torch.sigmoid(right[0] @ self.Uf + self.bf) * right[1]
        return self.gates((left[0] + right[0]) @ self.U + self.b, below)


class TreeGRU(Model):
    def __init__(self, hidden, words):
        super().__init__(hidden, words)
        self.X, self.W = self.draw(words, hidden), self.draw(hidden, 3 * hidden)
        self.Urz, self.Uh, self.b = self.draw(hidden, 2 * hidden), self.draw(hidden, hidden), self.draw(3 * hidden)

    def start(self, tokens):
        H = self.hidden
        x = self.X[tokens] @ self.W + self.b
        return ((1 - torch.sigmoid(x[:, H : 2 * H])) * torch.tanh(x[:, 2 * H :]),)

    def join(self, left, right, tokens):
        H = self.hidden
        s = left[0] + right[0]
        rz = torch.sigmoid(s @ self.Urz + self.b[: 2 * H])
        candidate = torch.tanh((rz[:, :H] * s) @ self.Uh + self.b[2 * H :])
        return ((1 - rz[:, H:]) * candidate + rz[:, H:] * s,)


class MVRNN(Model):
    def __init__(self, hidden, words):
        super().__init__(hidden, words)
        self.V, self.M0 = self.draw(100, hidden), self.draw(100, hidden, hidden)
        self.W, self.WM, self.b = self.draw(2 * hidden, hidden), self.draw(hidden, 2 * hidden), self.draw(hidden)

    def start(self, tokens):
        return self.V[tokens % 100], self.M0[tokens % 100]

    def join(self, left, right, tokens):
        (a, A), (c, C) = left, right
        turned = torch.cat((torch.bmm(a[:, None], C.mT), torch.bmm(c[:, None], A.mT)), 2)[:, 0]
        return torch.tanh(turned @ self.W + self.b), self.WM @ torch.cat((A, C), 1)


class DAGRNN(Model):
    def __init__(self, hidden, words):
        super().__init__(hidden, words)
        self.X, self.U, self.W, self.b = self.draw(words, hidden), self.draw(hidden, hidden), self.draw(hidden, hidden), self.draw(hidden)

    def start(self, tokens):
        return (torch.tanh(self.X[tokens] @ self.W + self.b),)

    def join(self, left, right, tokens):
        s = left[0] if right is None else right[0] if left is None else left[0] + right[0]
        return (torch.tanh(s @ self.U + self.X[tokens] @ self.W + self.b),)


class LSTM(Model):
    def __init__(self, hidden, words):
        super().__init__(hidden, words)
        self.X, self.W, self.U, self.b = self.draw(words, hidden), self.draw(hidden, 4 * hidden), self.draw(hidden, 4 * hidden), self.draw(4 * hidden)

    def gates(self, g, before):
        H = self.hidden
        c = torch.sigmoid(g[:, :H]) * torch.tanh(g[:, 3 * H :])
        if before is not None:
            c = c + torch.sigmoid(g[:, H : 2 * H]) * before
        return torch.sigmoid(g[:, 2 * H : 3 * H]) * torch.tanh(c), c

    def start(self, tokens):
        return self.gates(self.X[tokens] @ self.W + self.b, None)

    def join(self, left, right, tokens):
        return self.gates(self.X[tokens] @ self.W + self.b + left[0] @ self.U, left[1])


def node_by_node(model, tree):
    """The state of the root; a node that two others share is computed once."""
    states = {}

    def of(n):
        if n not in states:
            left, right, token, _ = tree[n]
            tokens = torch.tensor([max(token, 0)])
            if left == NONE and right == NONE:
                states[n] = model.start(tokens)
            else:
                states[n] = model.join(of(left) if left != NONE else None, of(right) if right != NONE else None, tokens)
        return states[n]

    return of(len(tree) - 1)


def make_levels(trees):
    """Nodes of one height and the same children missing: (places, left, right, tokens) of each group, children first."""
    groups, count = {}, 0
    for tree in trees:
        heights = []
        for n, (left, right, token, _) in enumerate(tree):
            height = max(heights[left] if left != NONE else NONE, heights[right] if right != NONE else NONE) + 1
            heights.append(height)
            group = groups.setdefault((height, left != NONE, right != NONE), ([], [], [], []))
            group[0].append(count + n)
            group[1].append(count + left)
            group[2].append(count + right)
            group[3].append(max(token, 0))
        count += len(tree)
    levels = []
    for (height, has_left, has_right), group in sorted(groups.items()):
        places, left, right, tokens = (torch.tensor(part) for part in group)
        levels.append((places, left if has_left else None, right if has_right else None, tokens))
    return count, levels


def level_by_level(model, count, levels):
    """The states of all nodes, in matrices that are written level by level."""
    states = None
    for places, left, right, tokens in levels:
        if left is None and right is None:
            new = model.start(tokens)
        else:
            of = lambda children: None if children is None else tuple(state[children] for state in states)
            new = model.join(of(left), of(right), tokens)
        if states is None:
            states = tuple(torch.empty((count,) + part.shape[1:]) for part in new)
        for state, part in zip(states, new):
            state[places] = part
    return states


def levels_with_derivative(model, count, levels):
    """As level_by_level, where nothing is written in place: states grow by a level at a time. Also gives the order."""
    place_in = torch.empty(count, dtype=torch.long)
    states, done = None, 0
    for places, left, right, tokens in levels:
        place_in[places] = torch.arange(done, done + len(places))
        done += len(places)
        if left is None and right is None:
            new = model.start(tokens)
        else:
            of = lambda children: None if children is None else tuple(state[place_in[children]] for state in states)
            new = model.join(of(left), of(right), tokens)
        states = new if states is None else tuple(torch.cat(parts) for parts in zip(states, new))
    return states, torch.cat([level[0] for level in levels])


def milliseconds(batches, call):
    call(batches[0])
    best = float("inf")
    for _ in range(OPTIONS.rounds):
        begin = time.perf_counter()
        for batch in batches:
            call(batch)
        best = min(best, (time.perf_counter() - begin) / len(batches))
    return round(best * 1e3, 3)


def say(**line):
    print(json.dumps({"peer": f"torch {torch.__version__}", "threads": OPTIONS.threads, **line}), flush=True)


def forward(name, kind, trees, hidden):
    torch.manual_seed(1)
    model = kind(hidden, 1 + max(node[2] for tree in trees for node in tree))
    alone, together = node_by_node(model, trees[0])[0], level_by_level(model, *make_levels(trees[:1]))[0]
    if not torch.allclose(alone[0], together[len(trees[0]) - 1], atol=1e-5):
        sys.exit(f"{name}: nodes and levels differ")
    for batch in (1, 10):
        count = max(1, min(100 if batch == 1 else 20, len(trees) // batch))
        batches = [trees[i * batch : (i + 1) * batch] for i in range(count)]
        levels = [make_levels(one) for one in batches]
        ways = {
            "node by node": milliseconds(batches, lambda one: [node_by_node(model, tree) for tree in one]),
            "levels made": milliseconds(batches, lambda one: level_by_level(model, *make_levels(one))),
            "levels given": milliseconds(levels, lambda one: level_by_level(model, *one)),
        }
        for way, ms in ways.items():
            say(case=name, hidden=hidden, batch=batch, way=way, ms=ms)


def train(trees, hidden=128, batch=64):
    torch.manual_seed(1)
    model = TreeLSTM(hidden, 1 + max(node[2] for tree in trees for node in tree))
    O, ob = model.draw(hidden, 5), model.draw(5)
    for parameter in model.parameters:
        parameter.requires_grad_(True)
    optimizer = torch.optim.Adam(model.parameters, 1e-3)
    begin, steps = time.perf_counter(), 0
    for first in range(0, len(trees) - batch + 1, batch):
        some = trees[first : first + batch]
        states, order = levels_with_derivative(model, *make_levels(some))
        labels = torch.tensor([node[3] for tree in some for node in tree])[order]
        loss = torch.nn.functional.cross_entropy(states[0] @ O + ob, labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        steps += 1
    seconds = time.perf_counter() - begin
    say(case="train", hidden=hidden, batch=batch, trees=len(trees), ms_per_step=round(1e3 * seconds / steps, 3),
        epoch_s=round(seconds / steps * len(trees) / batch, 3), loss=round(loss.item(), 4))


sentences = read_trees(OPTIONS.data) if OPTIONS.data else random_trees(1101)
CASES = {
    "treefc": (TreeFC, [perfect_tree(7)] * 64, (256, 512)),
    "treelstm": (TreeLSTM, sentences, (256, 512)),
    "treegru": (TreeGRU, sentences, (256, 512)),
    "mvrnn": (MVRNN, sentences, (64, 128)),
    "dagrnn": (DAGRNN, [grid(10)] * 64, (256, 512)),
    "lstm": (LSTM, [chain(100)] * 64, (256, 512)),
}
with torch.no_grad():
    for name, (kind, trees, sizes) in CASES.items():
        if OPTIONS.only in name:
            for hidden in sizes:
                forward(name, kind, trees, hidden)
if OPTIONS.only in "train":
    train(sentences)
