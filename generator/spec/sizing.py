"""Sizing rules as data: integer formulas over named terms, evaluated and explained.

A formula is what a spec writes, such as ``ceil(concurrency / ranks) + headroom_sequences``. The
grammar is small on purpose: whole numbers, names, ``+ - *``, ``ceil(a / b)``, ``floor(a / b)``,
``min`` and ``max``. There is no bare division: a rule has to say which way it rounds.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NoReturn

from generator.errors import InvalidInput, Problem
from generator.units import ceil_div

_GRAMMAR = "a formula uses whole numbers, names, + - *, ceil(a / b), floor(a / b), min(), max()"
_MAX_FORMULA_LENGTH = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A number a formula may name; ``text`` is how an explanation shows it, e.g. ``4 DP``."""

    value: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived:
    """A derived number and the one-line arithmetic that gives it."""

    value: int
    how: str = field(compare=False)


def evaluate(formula: int | str, terms: Mapping[str, Term]) -> Derived:
    """The value of a formula and the same formula with its names replaced by their terms.

    A plain integer explains itself by an empty ``how``. Raises InvalidInput for anything outside
    the grammar, an unknown name, a division by zero or a result that is not positive.
    """
    if isinstance(formula, int):
        return Derived(value=formula, how="")
    if len(formula) > _MAX_FORMULA_LENGTH:
        raise _invalid(formula[:40] + "...", f"longer than {_MAX_FORMULA_LENGTH} characters")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # Python merely warns of text such as 1or 2
            tree = ast.parse(formula.strip(), mode="eval")
    except (SyntaxError, ValueError):
        raise _invalid(formula, "not a formula") from None
    evaluator = _Evaluator(formula=formula, terms=terms)
    value = evaluator.value(tree.body)
    if value <= 0:
        raise _invalid(formula, f"gives {value}; a size must be at least 1")
    return Derived(value=value, how=evaluator.text(tree.body))


_FUNCTIONS: dict[str, Callable[..., int]] = {"min": min, "max": max}
_ROUNDING: dict[str, Callable[[int, int], int]] = {
    "ceil": ceil_div,
    "floor": lambda numerator, denominator: numerator // denominator,
}
_OPERATORS: dict[type[ast.operator], tuple[str, Callable[[int, int], int]]] = {
    ast.Add: ("+", lambda left, right: left + right),
    ast.Sub: ("-", lambda left, right: left - right),
    ast.Mult: ("*", lambda left, right: left * right),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Evaluator:
    formula: str
    terms: Mapping[str, Term]

    def value(self, node: ast.expr) -> int:
        match node:
            case ast.Constant(value=int(number)) if not isinstance(number, bool):
                return number
            case ast.Name(id=name):
                return self._term(name).value
            case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _OPERATORS:
                return _OPERATORS[type(operator)][1](self.value(left), self.value(right))
            case ast.Call(func=ast.Name(id=name), args=[quotient], keywords=[]) if (
                name in _ROUNDING
            ):
                numerator, denominator = self._quotient(quotient)
                divisor = self.value(denominator)
                if divisor <= 0:
                    self._fail(f"divides by {divisor}")
                return _ROUNDING[name](self.value(numerator), divisor)
            case ast.Call(func=ast.Name(id=name), args=[_, _, *_], keywords=[]) if (
                name in _FUNCTIONS
            ):
                return _FUNCTIONS[name](*(self.value(argument) for argument in node.args))
        self._fail(f"cannot use '{ast.unparse(node)}'")

    def text(self, node: ast.expr) -> str:
        """The formula as written, names replaced; only called on a tree that has a value."""
        match node:
            case ast.Name(id=name):
                return self.terms[name].text
            case ast.BinOp(left=left, op=operator, right=right):
                symbol = _OPERATORS.get(type(operator), ("/", None))[0]
                left_text = self._side(left, in_parentheses=_is_sum(left) and symbol in "*/")
                right_text = self._side(
                    right,
                    in_parentheses=(_is_sum(right) and symbol in "*/-")
                    or (isinstance(right, ast.BinOp) and symbol == "/"),
                )
                return f"{left_text} {symbol} {right_text}"
            case ast.Call(func=ast.Name(id=name)):
                return f"{name}({', '.join(self.text(argument) for argument in node.args)})"
        return ast.unparse(node)

    def _side(self, node: ast.expr, *, in_parentheses: bool) -> str:
        return f"({self.text(node)})" if in_parentheses else self.text(node)

    def _term(self, name: str) -> Term:
        if name not in self.terms:
            self._fail(f"unknown name '{name}'; known here: {', '.join(sorted(self.terms))}")
        return self.terms[name]

    def _quotient(self, node: ast.expr) -> tuple[ast.expr, ast.expr]:
        if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)):
            self._fail("ceil and floor take one division, as in ceil(a / b)")
        return node.left, node.right

    def _fail(self, reason: str) -> NoReturn:
        raise _invalid(self.formula, reason)


def _is_sum(node: ast.expr) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub)


def _invalid(formula: str, reason: str) -> InvalidInput:
    return InvalidInput(Problem(message=f"formula '{formula}': {reason}", hint=_GRAMMAR))
