"""The command `assay claims`."""

from __future__ import annotations

from pathlib import Path

from assay._core.arrays import InputError
from assay._core.writing import not_over, replacing
from assay.cli.output import show


def claims_command(file: Path, *, kept: Path, to: Path | None = None, html: Path | None = None) -> None:
    """Judge claims from what is kept of the runs that decide them.

    Parameters
    ----------
    file
        The claims, a TOML file.
    kept
        Folder of what `assay study keep` wrote.
    to
        Write the verdicts to this Markdown file.
    html
        Write them to this page.
    """
    from assay.claims import claims_page, has_evidence, judge, markdown, read_claims, read_evidence, summary, view

    not_over(to, html, reading=[file])
    claims = read_claims(file)
    regimes = dict.fromkeys(regime for claim in claims for regime in claim.regime)
    found = {regime: read_evidence(kept, regime) for regime in regimes if has_evidence(kept, regime)}
    if not found:
        raise InputError(f"{kept}: nothing is kept of {', '.join(regimes)}; assay study keep writes it")
    judged = judge(claims, found)
    show(view(judged))
    show(summary(judged))
    if to is not None:
        with replacing(to) as stream:
            stream.write(markdown(judged, found).encode())
    if html is not None:
        claims_page(judged, found, html)
