"""Attributes that are worked out when they are first asked for, and then kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class once(Generic[T]):  # noqa: N801 - a decorator
    """As `functools.cached_property`, without the lock that this takes before Python 3.12 and which costs more than
    what is worked out here. Two threads may both work it out."""

    def __init__(self, work_out: Callable[[Any], T]) -> None:
        self._work_out = work_out
        self.__doc__ = work_out.__doc__

    def __set_name__(self, owner: type[Any], name: str) -> None:
        self._name = name

    @overload
    def __get__(self, record: None, owner: type[Any]) -> once[T]: ...

    @overload
    def __get__(self, record: object, owner: type[Any]) -> T: ...

    def __get__(self, record: object | None, owner: type[Any]) -> once[T] | T:
        if record is None:
            return self
        found = record.__dict__[self._name] = self._work_out(record)
        return found
