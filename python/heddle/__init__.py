# SPDX-License-Identifier: Apache-2.0
"""Heddle: a dataflow engine for linear algebra and machine learning (docs/python.md)."""

from heddle._cluster import Cluster, connect, sim
from heddle._errors import (Cancelled, CompileError, DataError, Error, ForkError, HeddleWarning, InternalError,
                            ResourceError, ScriptError, UnreachableError, UsageError)
from heddle._frame import Frame
from heddle._run import Results, check, explain, run
from heddle._session import Session

__all__ = ["Cancelled", "Cluster", "CompileError", "DataError", "Error", "ForkError", "Frame", "HeddleWarning", "InternalError",
           "ResourceError", "Results", "ScriptError", "Session", "UnreachableError", "UsageError", "check", "connect", "explain",
           "run", "sim"]
