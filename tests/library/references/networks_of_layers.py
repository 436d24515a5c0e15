# SPDX-License-Identifier: Apache-2.0
"""A convolutional network and a transformer in PyTorch, trained on digits from the same weights in the same steps: loss at first, and probabilities of
records held out."""
import numpy as np
import torch
from torch.nn import functional

from reference import data, save

torch.set_default_dtype(torch.float64)


def weights(rows, columns, k, deviation):
    i = np.arange(1.0, rows * columns + 1)
    return torch.tensor((deviation * np.sqrt(2) * np.sin(i * i * k)).reshape(rows, columns), requires_grad=True)


def zeros(rows, columns):
    return torch.zeros((rows, columns), requires_grad=True)


def ones(rows, columns):
    return torch.ones((rows, columns), requires_grad=True)


def trained(p, scores, X, label, first, learned, batch, epochs, rate):
    """Probabilities of 60 records behind those that are learned, and the loss of the first ones before."""
    loss = functional.cross_entropy(scores(X[:first]), label[:first]).item()
    m, v = {name: torch.zeros_like(w) for name, w in p.items()}, {name: torch.zeros_like(w) for name, w in p.items()}
    step = 0
    for epoch in range(epochs):
        for start in range(0, learned, batch):
            rows = slice(start, start + batch)
            gradients = torch.autograd.grad(functional.cross_entropy(scores(X[rows]), label[rows]), list(p.values()))
            step += 1
            with torch.no_grad():
                for (name, w), g in zip(p.items(), gradients):
                    # As Kingma and Ba write it at the end of their section 2: epsilon is added to the root as it is.
                    m[name] = 0.9 * m[name] + 0.1 * g
                    v[name] = 0.999 * v[name] + 0.001 * g ** 2
                    w -= rate * np.sqrt(1 - 0.999 ** step) / (1 - 0.9 ** step) * m[name] / (torch.sqrt(v[name]) + 1e-8)
    with torch.no_grad():
        probabilities = torch.softmax(scores(X[learned:]), 1)
        print("accuracy", (probabilities.argmax(1) == label[learned:]).double().mean().item())
    return loss, probabilities.numpy()[:60]


D = data("digits")
pixels, digit = D[:, :64] / 16, D[:, 64].astype(int) - 1

convolution = {"W1": weights(8, 9, 0.7, 0.4), "b1": zeros(8, 1), "W2": weights(128, 10, 0.9, 0.1), "b2": zeros(1, 10)}


def convolution_scores(X):
    p = convolution
    c = functional.conv2d(X.view(-1, 1, 8, 8), p["W1"].view(8, 1, 3, 3), p["b1"][:, 0], padding=1)
    return functional.max_pool2d(functional.relu(c), 2).flatten(1) @ p["W2"] + p["b2"]


results = list(trained(convolution, convolution_scores, torch.tensor(pixels), torch.tensor(digit), 20, 450, 45, 4, 0.01))

few = digit < 4
# Bins of brightness 1 to 5, here from 0. Halves are rounded as DML rounds them: up.
words = np.floor(pixels[few].reshape(-1, 4, 2, 4, 2).sum(axis=(2, 4)).reshape(-1, 16) + 0.5).astype(int)
layer = {"E": weights(5, 8, 0.7, 1), "P": weights(16, 8, 0.3, 0.5), "W1": weights(8, 16, 1.1, 0.3), "b1": zeros(1, 16), "W2": weights(16, 8, 1.2, 0.3),
         "b2": zeros(1, 8), "W3": weights(8, 4, 1.3, 0.3), "b3": zeros(1, 4)}
for name, k in (("Q", 0.5), ("K", 0.6), ("V", 0.8), ("O", 0.9)):
    layer["W" + name], layer["b" + name] = weights(8, 8, k, 0.3), zeros(1, 8)
for i in ("1", "2"):
    layer["g" + i], layer["e" + i] = ones(1, 8), zeros(1, 8)


def transformer_scores(rows):
    p = layer
    split = lambda x: x.view(-1, 16, 2, 4).transpose(1, 2)
    x = p["E"][rows] + p["P"]
    q, k, v = (split(x @ p["W" + c] + p["b" + c]) for c in "QKV")
    a = (torch.softmax(q @ k.transpose(2, 3) / 2, 3) @ v).transpose(1, 2).reshape(-1, 16, 8)
    f = functional.layer_norm(x + a @ p["WO"] + p["bO"], (8,), p["g1"][0], p["e1"][0], 1e-5)
    h = functional.layer_norm(f + functional.gelu(f @ p["W1"] + p["b1"], approximate="tanh") @ p["W2"] + p["b2"], (8,), p["g2"][0], p["e2"][0], 1e-5)
    return h.mean(1) @ p["W3"] + p["b3"]


results += trained(layer, transformer_scores, torch.tensor(words), torch.tensor(digit[few]), 6, 180, 30, 12, 0.03)
save("networks_of_layers", *results)
