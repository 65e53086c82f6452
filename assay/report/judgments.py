"""What is known of a judge, for the terminal: how many answers are right, and which of its verdicts to trust."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from assay.judging import UNLIKE, Judged
from assay.report.promises import threshold_view
from assay.report.quantities import share
from assay.report.terminal import grid


def judge_view(found: Judged) -> RenderableType:
    """The corrected share of right answers, the audit of the judge, and which verdicts can be trusted."""
    table = grid("right answers", "share", "95 % interval")
    table.add_row("as the judge says", share(found.claimed), "")
    for name, each in (("corrected by the labels", found.accuracy), ("by the labels alone", found.labels_alone)):
        table.add_row(name, share(each.value), f"{share(each.interval.low)} – {share(each.interval.high)}")
    size = f"{found.n:,} answers, {found.labelled:,} with a human label"
    parts: list[RenderableType] = [table, Text(size, "bold")]
    if found.unlike < UNLIKE:
        doubt = "The judge scores the labelled answers differently from the others"
        parts.append(Text(f"{doubt} (p = {found.unlike:.2g}): if they are no random part, nothing here holds.", "red"))
    parts += [Text.assemble(("The judge's verdicts: ", "bold"), f"right in {share(found.audit['accuracy'].value)}. ")]
    parts += [Text(str(found.audit)), Text("Verdicts to trust:", "bold"), threshold_view(found.threshold)]
    if found.threshold.accepted:
        parts.append(Text(f"Of all answers {share(found.trusted)} have such a verdict; the rest is left for people."))
    return Group(*parts)
