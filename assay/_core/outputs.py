"""What a model returns, whichever framework it comes from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assay._core.arrays import InputError


def logits_of(output: Any) -> Any:
    """The logits in what a model returned: an array, or a record or dict that calls them `logits`.

    >>> logits_of({"loss": 0.3, "logits": [[2.0, 0.0]]})
    [[2.0, 0.0]]
    """
    if isinstance(output, Mapping) and "logits" in output:
        return output["logits"]
    if hasattr(output, "logits"):
        return output.logits
    if isinstance(output, Mapping | tuple):
        parts = ", ".join(map(str, output)) if isinstance(output, Mapping) else f"{len(output)} values"
        raise InputError(f"the model returned {parts} and nothing called logits; say logits=lambda output: ...")
    return output
