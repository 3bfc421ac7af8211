"""Results of attacks: counts, findings, and the printed table."""

from collections.abc import Iterable
from dataclasses import dataclass, field

EXCERPT = 300
WIDTHS = (34, 9, 9, 9, 8)


@dataclass(frozen=True, slots=True)
class Finding:
    """An attempt that was not refused as expected: the request, and the response."""

    request: str
    response: str


@dataclass(slots=True)
class AttackResult:
    """Attempts of one attack. `seconds` is wall-clock time; `left_out` names what the instance did not allow to try."""

    name: str
    attempts: int = 0
    seconds: float = 0.0
    findings: list[Finding] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    def check(self, is_refused: bool, request: str, response: object) -> None:
        """Count an attempt, which is a finding unless it was refused as expected."""
        self.attempts += 1
        if not is_refused:
            self.findings.append(Finding(request[:EXCERPT], str(response)[:EXCERPT]))

    @property
    def refused(self) -> int:
        return self.attempts - len(self.findings)


def render_table(results: Iterable[AttackResult]) -> str:
    """Return a line for each attack, and below them what was found and what was left out."""
    lines = [_render_line("attack", "attempts", "refused", "findings", "seconds")]
    details: list[str] = []
    total = AttackResult("all")
    for result in results:
        lines.append(_render_result(result))
        total.attempts += result.attempts
        total.seconds += result.seconds
        total.findings += result.findings
        details += [f"FINDING {result.name}\n  {found.request}\n  {found.response}" for found in result.findings]
        details += [f"left out of {result.name}: {reason}" for reason in result.left_out]
    return "\n".join([*lines, _render_result(total), *details])


def _render_result(result: AttackResult) -> str:
    counts = (result.attempts, result.refused, len(result.findings), f"{result.seconds:.1f}")
    return _render_line(result.name, *counts)


def _render_line(name: str, *columns: object) -> str:
    return name.ljust(WIDTHS[0]) + "".join(
        str(text).rjust(width) for text, width in zip(columns, WIDTHS[1:], strict=True)
    )
