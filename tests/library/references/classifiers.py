# SPDX-License-Identifier: Apache-2.0
"""Naive Bayes and the records that abstain() leaves out by scikit-learn; moments of classes by NumPy."""
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB

from reference import data, save

digits = data("digits")
X, y = digits[:, :-1], digits[:, -1]
bayes = MultinomialNB(alpha=0.5).fit(X, y)

iris = data("iris")
Z, k = iris[:, :-1], iris[:, -1]
classes = [Z[:140][k[:140] == label] for label in (1, 2, 3)]
covariances = [np.cov(c, rowvar=False) for c in classes]
smoothed = [c + 0.01 * max(d.diagonal().max() for d in covariances) * np.eye(4) for c in covariances]

cancer = data("breast_cancer")
C, benign = cancer[:, :10], cancer[:, -1]
logistic = LogisticRegression(C=1e4, tol=1e-10, max_iter=10000, solver="newton-cholesky").fit(C, benign)
probabilities = logistic.predict_proba(C)
left_out = (logistic.predict(C) != benign) & (probabilities.max(axis=1) > 0.8)
save("classifiers",
     np.exp(bayes.class_log_prior_), np.exp(bayes.feature_log_prob_[::3]), bayes.predict_joint_log_proba(X[:30]),
     bayes.predict(X).sum(),
     [len(c) / 140 for c in classes], [c.mean(axis=0) for c in classes], np.vstack([np.linalg.inv(c) for c in covariances]),
     [np.linalg.det(c) for c in covariances],
     np.vstack([np.linalg.inv(c) for c in smoothed]), [np.linalg.det(c) for c in smoothed],
     np.flatnonzero(left_out) + 1)
