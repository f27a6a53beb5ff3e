"""What is known of a judge from the answers that people labelled."""

from __future__ import annotations

from dataclasses import dataclass, field

from oloproof.statistics.agreement import Agreement


@dataclass(frozen=True)
class JudgeCheck:
    """A judge, as it is defined at present, against people's labels.

    `agreement` counts the answers that people passed or failed and the judge was asked about. `unasked` more have a
    label, but the judge as it is defined at present was never asked about them. `unsure` are those of which people
    could not tell, `outdated` labels are about another question. Of `repeated` answers, of which the judge gave several
    samples, `steady` got the same verdict each time.
    """

    criterion: str
    agreement: Agreement = field(default_factory=Agreement)
    unasked: int = 0
    unsure: int = 0
    outdated: int = 0
    repeated: int = 0
    steady: int = 0
