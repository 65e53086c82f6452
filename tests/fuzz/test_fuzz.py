"""The mutation bench: a small one in every test run, a large one in `make verify`."""

from __future__ import annotations

from collections import Counter

import pytest

from fuzz.bench import run_all


def held(cases: int, first: int, *, slow: bool = False) -> Counter[tuple[str, str]]:
    counts, wrong = run_all(cases, first, slow=slow)
    assert not wrong, "\n".join(wrong[:20])
    assert sum(counts.values()) == cases
    return counts


def test_damaged_files_are_read_or_refused_in_a_line():
    held(2000, first=0)


@pytest.mark.long
def test_very_many_damaged_files_are_read_or_refused_in_a_line():
    counts = held(50_000, first=100_000, slow=True)
    assert {name for name, how in counts if how == "refused"} == {name for name, _ in counts}
