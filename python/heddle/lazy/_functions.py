# SPDX-License-Identifier: Apache-2.0
"""Functions of NumPy that DML does not have, made of those that it has; and all that work cell by cell, by name."""

from __future__ import annotations

import math
from typing import Any, Callable, Dict

from heddle.lazy._elementwise import (
    UNARY,
    as_boolean,
    as_float,
    binary,
    bits,
    ceil,
    floor,
    floor_divide,
    invert,
    is_finite,
    is_infinite,
    is_nan,
    logical,
    node_of,
    remainder,
    rounded,
    truncated,
    unary,
    where,
)
from heddle.lazy._leaf import number_text
from heddle.lazy._node import FLOAT, Node, like


def log_of_1_plus(value: Any) -> Node:
    """log(1 + x), right where x is small: log(u) * x / (u - 1) of u = 1 + x (Higham, Accuracy and Stability of
    Numerical Algorithms, section 1.14.1)."""
    x = as_float(node_of(value))
    u = binary("add", x, 1.0)
    scaled = binary("divide", binary("multiply", unary("log", u), x), binary("subtract", u, 1.0))
    exact = where(binary("equal", u, 1.0), x, scaled)
    return where(is_infinite(u), unary("log", u), exact)


def exp_minus_1(value: Any) -> Node:
    """exp(x) - 1, right where x is small, by the same idea."""
    x = as_float(node_of(value))
    u = unary("exp", x)
    less = binary("subtract", u, 1.0)
    scaled = binary("multiply", less, binary("divide", x, unary("log", u)))
    exact = where(binary("equal", u, 1.0), x, scaled)
    return where(binary("or", is_infinite(u), binary("equal", less, -1.0)), less, exact)


def log_to_base(base: float) -> Callable[[Any], Node]:
    def logarithm(value: Any) -> Node:
        node = as_float(node_of(value))
        return like("log({0}, {1})", (node, number_text(base)), node, FLOAT)
    return logarithm


def arc_tangent_2(y: Any, x: Any) -> Node:
    """The angle of the point (x, y), with the signs of zeros and infinities that IEEE 754 gives it."""
    y, x = as_float(node_of(y)), as_float(node_of(x))
    both_infinite = binary("and", is_infinite(x), is_infinite(y))
    slope = where(both_infinite, binary("multiply", unary("sign", y), unary("sign", x)), binary("divide", y, x))
    both_zero = binary("and", binary("equal", x, 0), binary("equal", y, 0))
    angle = where(both_zero, y, unary("arctan", slope))
    half_turn = _copied_sign(math.pi, y)
    return where(is_negative(x), binary("add", angle, half_turn), angle)


def is_negative(value: Any) -> Node:
    """Whether the sign is -, that of -0.0 as well."""
    return binary("or", binary("less", binary("divide", 1.0, value), 0), binary("less", value, 0))


def _square(value: Any) -> Node:
    return binary("power", value, 2)


def _inverse_hyperbolic_sine(value: Any) -> Node:
    x = as_float(node_of(value))
    magnitude = unary("absolute", x)
    root = unary("sqrt", binary("add", _square(x), 1.0))
    correction = binary("divide", _square(x), binary("add", root, 1.0))
    small = log_of_1_plus(binary("add", magnitude, correction))
    large = binary("add", unary("log", magnitude), 0.6931471805599453)
    return binary("multiply", unary("sign", x), where(binary("greater", magnitude, 1e10), large, small))


def _inverse_hyperbolic_cosine(value: Any) -> Node:
    x = as_float(node_of(value))
    return unary("log", binary("add", x, binary("multiply", unary("sqrt", binary("subtract", x, 1.0)),
                                                unary("sqrt", binary("add", x, 1.0)))))


def _inverse_hyperbolic_tangent(value: Any) -> Node:
    x = as_float(node_of(value))
    return binary("multiply", 0.5, binary("subtract", log_of_1_plus(x), log_of_1_plus(unary("negative", x))))


def _sum_of_exponentials(left: Any, right: Any) -> Node:
    """log(exp(left) + exp(right)) without overflow."""
    left, right = node_of(left), node_of(right)
    high = binary("maximum", left, right)
    distance = unary("absolute", binary("subtract", left, right))
    together = binary("add", high, log_of_1_plus(unary("exp", unary("negative", distance))))
    return where(binary("equal", left, right), binary("add", left, 0.6931471805599453), together)


def _copied_sign(magnitude: Any, sign: Any) -> Node:
    size = unary("absolute", as_float(node_of(magnitude)))
    return where(is_negative(sign), unary("negative", size), size)


FUNCTIONS: Dict[str, Callable[..., Node]] = {
    **{name: (lambda value, name=name: unary(name, value)) for name in UNARY},
    **{name: (lambda left, right, name=name: binary(name, left, right)) for name in (
        "add", "subtract", "multiply", "divide", "power", "fmod", "equal", "not_equal", "less", "less_equal", "greater",
        "greater_equal", "maximum", "minimum", "left_shift", "right_shift")},
    "true_divide": lambda left, right: binary("divide", left, right),
    "float_power": lambda left, right: binary("power", as_float(node_of(left)), right),
    "abs": lambda value: unary("absolute", value),
    "fabs": lambda value: unary("absolute", as_float(node_of(value))),
    "positive": node_of,
    "logical_not": lambda value: invert(as_boolean(value)),
    "logical_and": logical("and"), "logical_or": logical("or"), "logical_xor": logical("xor"),
    "bitwise_and": lambda left, right: bits("and", left, right),
    "bitwise_or": lambda left, right: bits("or", left, right),
    "bitwise_xor": lambda left, right: bits("xor", left, right),
    "invert": invert, "isnan": is_nan, "isinf": is_infinite, "isfinite": is_finite,
    "floor": floor, "ceil": ceil, "trunc": truncated, "rint": rounded,
    "floor_divide": floor_divide, "remainder": remainder,
    "log1p": log_of_1_plus, "expm1": exp_minus_1, "log2": log_to_base(2.0), "log10": log_to_base(10.0),
    "exp2": lambda value: binary("power", 2.0, value),
    "square": _square,
    "reciprocal": lambda value: binary("divide", 1.0, value),
    "cbrt": lambda value: binary("multiply", unary("sign", value),
                                 binary("power", unary("absolute", as_float(node_of(value))), 1 / 3)),
    "hypot": lambda left, right: unary("sqrt", binary("add", _square(left), _square(right))),
    "arctan2": arc_tangent_2, "arcsinh": _inverse_hyperbolic_sine, "arccosh": _inverse_hyperbolic_cosine,
    "arctanh": _inverse_hyperbolic_tangent, "logaddexp": _sum_of_exponentials, "copysign": _copied_sign,
    "deg2rad": lambda value: binary("multiply", value, 0.017453292519943295),
    "rad2deg": lambda value: binary("multiply", value, 57.29577951308232),
    "radians": lambda value: binary("multiply", value, 0.017453292519943295),
    "degrees": lambda value: binary("multiply", value, 57.29577951308232),
    "expit": lambda value: binary("divide", 1.0, binary("add", 1.0, unary("exp", unary("negative", value)))),
}
