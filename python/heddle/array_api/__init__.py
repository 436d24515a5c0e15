# SPDX-License-Identifier: Apache-2.0
"""The namespace of the Array API standard, as far as two dimensions and float64, int64 and bool go.

``x.__array_namespace__()`` is this module. python/tests/array_api_skips.txt says what is left out and why.
"""

from __future__ import annotations

import math as _math

from heddle.array_api import linalg as linalg
from heddle.array_api._cells import abs as abs
from heddle.array_api._cells import acos as acos
from heddle.array_api._cells import acosh as acosh
from heddle.array_api._cells import add as add
from heddle.array_api._cells import asin as asin
from heddle.array_api._cells import asinh as asinh
from heddle.array_api._cells import atan as atan
from heddle.array_api._cells import atan2 as atan2
from heddle.array_api._cells import atanh as atanh
from heddle.array_api._cells import bitwise_and as bitwise_and
from heddle.array_api._cells import bitwise_invert as bitwise_invert
from heddle.array_api._cells import bitwise_left_shift as bitwise_left_shift
from heddle.array_api._cells import bitwise_or as bitwise_or
from heddle.array_api._cells import bitwise_right_shift as bitwise_right_shift
from heddle.array_api._cells import bitwise_xor as bitwise_xor
from heddle.array_api._cells import ceil as ceil
from heddle.array_api._cells import clip as clip
from heddle.array_api._cells import conj as conj
from heddle.array_api._cells import copysign as copysign
from heddle.array_api._cells import cos as cos
from heddle.array_api._cells import cosh as cosh
from heddle.array_api._cells import divide as divide
from heddle.array_api._cells import equal as equal
from heddle.array_api._cells import exp as exp
from heddle.array_api._cells import expm1 as expm1
from heddle.array_api._cells import floor as floor
from heddle.array_api._cells import floor_divide as floor_divide
from heddle.array_api._cells import greater as greater
from heddle.array_api._cells import greater_equal as greater_equal
from heddle.array_api._cells import hypot as hypot
from heddle.array_api._cells import imag as imag
from heddle.array_api._cells import isfinite as isfinite
from heddle.array_api._cells import isinf as isinf
from heddle.array_api._cells import isnan as isnan
from heddle.array_api._cells import less as less
from heddle.array_api._cells import less_equal as less_equal
from heddle.array_api._cells import log as log
from heddle.array_api._cells import log1p as log1p
from heddle.array_api._cells import log2 as log2
from heddle.array_api._cells import log10 as log10
from heddle.array_api._cells import logaddexp as logaddexp
from heddle.array_api._cells import logical_and as logical_and
from heddle.array_api._cells import logical_not as logical_not
from heddle.array_api._cells import logical_or as logical_or
from heddle.array_api._cells import logical_xor as logical_xor
from heddle.array_api._cells import maximum as maximum
from heddle.array_api._cells import minimum as minimum
from heddle.array_api._cells import multiply as multiply
from heddle.array_api._cells import negative as negative
from heddle.array_api._cells import not_equal as not_equal
from heddle.array_api._cells import positive as positive
from heddle.array_api._cells import pow as pow
from heddle.array_api._cells import real as real
from heddle.array_api._cells import reciprocal as reciprocal
from heddle.array_api._cells import remainder as remainder
from heddle.array_api._cells import round as round
from heddle.array_api._cells import sign as sign
from heddle.array_api._cells import signbit as signbit
from heddle.array_api._cells import sin as sin
from heddle.array_api._cells import sinh as sinh
from heddle.array_api._cells import sqrt as sqrt
from heddle.array_api._cells import square as square
from heddle.array_api._cells import subtract as subtract
from heddle.array_api._cells import tan as tan
from heddle.array_api._cells import tanh as tanh
from heddle.array_api._cells import trunc as trunc
from heddle.array_api._creation import __array_namespace_info__ as __array_namespace_info__
from heddle.array_api._creation import arange as arange
from heddle.array_api._creation import asarray as asarray
from heddle.array_api._creation import astype as astype
from heddle.array_api._creation import can_cast as can_cast
from heddle.array_api._creation import empty as empty
from heddle.array_api._creation import empty_like as empty_like
from heddle.array_api._creation import eye as eye
from heddle.array_api._creation import finfo as finfo
from heddle.array_api._creation import from_dlpack as from_dlpack
from heddle.array_api._creation import full as full
from heddle.array_api._creation import full_like as full_like
from heddle.array_api._creation import iinfo as iinfo
from heddle.array_api._creation import isdtype as isdtype
from heddle.array_api._creation import linspace as linspace
from heddle.array_api._creation import ones as ones
from heddle.array_api._creation import ones_like as ones_like
from heddle.array_api._creation import result_type as result_type
from heddle.array_api._creation import tril as tril
from heddle.array_api._creation import triu as triu
from heddle.array_api._creation import zeros as zeros
from heddle.array_api._creation import zeros_like as zeros_like
from heddle.array_api._reductions import all as all
from heddle.array_api._reductions import any as any
from heddle.array_api._reductions import argmax as argmax
from heddle.array_api._reductions import argmin as argmin
from heddle.array_api._reductions import count_nonzero as count_nonzero
from heddle.array_api._reductions import cumulative_prod as cumulative_prod
from heddle.array_api._reductions import cumulative_sum as cumulative_sum
from heddle.array_api._reductions import diff as diff
from heddle.array_api._reductions import matmul as matmul
from heddle.array_api._reductions import max as max
from heddle.array_api._reductions import mean as mean
from heddle.array_api._reductions import min as min
from heddle.array_api._reductions import prod as prod
from heddle.array_api._reductions import std as std
from heddle.array_api._reductions import sum as sum
from heddle.array_api._reductions import tensordot as tensordot
from heddle.array_api._reductions import var as var
from heddle.array_api._reductions import vecdot as vecdot
from heddle.array_api._shapes import argsort as argsort
from heddle.array_api._shapes import broadcast_arrays as broadcast_arrays
from heddle.array_api._shapes import broadcast_shapes as broadcast_shapes
from heddle.array_api._shapes import broadcast_to as broadcast_to
from heddle.array_api._shapes import concat as concat
from heddle.array_api._shapes import expand_dims as expand_dims
from heddle.array_api._shapes import flip as flip
from heddle.array_api._shapes import matrix_transpose as matrix_transpose
from heddle.array_api._shapes import meshgrid as meshgrid
from heddle.array_api._shapes import moveaxis as moveaxis
from heddle.array_api._shapes import nonzero as nonzero
from heddle.array_api._shapes import permute_dims as permute_dims
from heddle.array_api._shapes import repeat as repeat
from heddle.array_api._shapes import reshape as reshape
from heddle.array_api._shapes import roll as roll
from heddle.array_api._shapes import searchsorted as searchsorted
from heddle.array_api._shapes import sort as sort
from heddle.array_api._shapes import squeeze as squeeze
from heddle.array_api._shapes import stack as stack
from heddle.array_api._shapes import take as take
from heddle.array_api._shapes import take_along_axis as take_along_axis
from heddle.array_api._shapes import tile as tile
from heddle.array_api._shapes import unique_all as unique_all
from heddle.array_api._shapes import unique_counts as unique_counts
from heddle.array_api._shapes import unique_inverse as unique_inverse
from heddle.array_api._shapes import unique_values as unique_values
from heddle.array_api._shapes import unstack as unstack
from heddle.array_api._shapes import where as where
from heddle.lazy._node import BOOL as bool
from heddle.lazy._node import FLOAT as float64
from heddle.lazy._node import INT as int64

__array_api_version__ = "2024.12"

e, pi, inf, nan = _math.e, _math.pi, _math.inf, _math.nan
newaxis = None
