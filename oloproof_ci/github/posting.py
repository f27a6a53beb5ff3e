"""The one comment of a pull request, written so that it converges: however many jobs write at once, and whatever is
lost on the way, in the end there is one comment, and each section in it is of the newest run on the newest head.

GitHub cannot change a comment on condition that it is still as it was read. So each writer reads, merges its sections
into what it found, writes at once, and looks again after every other writer that may have read the old text has
written; what it then misses it writes again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from oloproof_ci.github.client import Comment, GitHub
from oloproof_ci.github.errors import ApiError
from oloproof_ci.github.fitting import Draft, fitted
from oloproof_ci.github.marked import Section, is_marked, merge, read_sections, write

#: Seconds after which another writer that read before we wrote has written too.
SETTLE = 1.5
ROUNDS = 6
TRIES = 3
#: As whom the job's own token writes.
JOB_LOGIN = "github-actions[bot]"


@dataclass(frozen=True)
class Posted:
    """What came of it. `unchecked`: it was written, and whether it stayed could not be seen; `superseded`: a newer run
    had written already; `moved`: the pull request has another head now. The last two leave the comment as it is."""

    outcome: Literal["written", "unchecked", "superseded", "moved"]
    url: str = ""


class Posting:
    """Writes drafts into the comment of one pull request. `author` is whose token this is, None when not known. A
    section of the same run is replaced too, as that of an earlier step, unless `once` is set."""

    def __init__(
        self,
        github: GitHub,
        number: int,
        head: str,
        author: str | None,
        sleep: Callable[[float], None],
        once: bool = False,
    ) -> None:
        self._github = github
        self._number = number
        self._head = head
        self._author = author
        self._sleep = sleep
        self._once = once
        self._url = ""  # of what we have written

    def post(self, drafts: Sequence[Draft]) -> Posted:
        """Bring the drafts into the comment. Raises ApiError when GitHub does not let us."""
        if self._current_head() != self._head:
            return Posted("moved")
        try:
            return self._converge(drafts)
        except ApiError:
            if self._url:
                return Posted("unchecked", self._url)
            raise

    def _converge(self, drafts: Sequence[Draft]) -> Posted:
        """Read, merge and write until what is read is as it should be."""
        changed: Comment | None = None
        for _ in range(ROUNDS):
            standing = self._again(changed) if changed else self._ours()
            changed = None
            # Until we have written, a section of our own age is an earlier step's of the same job.
            missing = _missing(drafts, standing, self._head, again=not (self._url or self._once))
            if not standing:
                if not drafts:
                    return Posted("moved")
                self._url = self._create(drafts)
            elif self._may_have_moved(standing, drafts) and (head := self._current_head()) != self._head:
                if len(standing) == 1 or not merge(_sections(standing), (), head):
                    return Posted("moved")
                # We posted beside the newer head's comment: of the two one stays, with what is of that head.
                self._head, drafts = head, ()
                continue
            elif missing or not _covers(standing[0], standing[1:], self._head):
                written = self._update(standing, drafts)
                self._url = written.url if written else ""
                # Where there is one comment, no other writer makes a second, and reading that one is enough.
                changed = written if len(standing) == 1 else None
            elif len(standing) > 1:
                self._remove(standing[1:])
                continue
            else:
                return self._settled(standing[0], drafts)
            self._sleep(SETTLE)
        return Posted("unchecked", self._url)

    def _settled(self, comment: Comment, drafts: Sequence[Draft]) -> Posted:
        if not drafts:
            return Posted("moved")
        found = {(s.mark.name, s.mark.head, s.mark.age) for s in read_sections(comment.body)}
        stands = self._url and any((d.mark.name, d.mark.head, d.mark.age) in found for d in drafts)
        return Posted("written" if stands else "superseded", comment.url)

    def _may_have_moved(self, standing: Sequence[Comment], drafts: Sequence[Draft]) -> bool:
        """Whether what stands gives reason to ask again which commit is the head: another head's section that came
        beside what we wrote, or, before we wrote, one of a newer run, since reading may have taken long."""
        others = [section.mark for section in _sections(standing) if section.mark.head != self._head]
        ours = max((draft.mark.age for draft in drafts), default=(0, 0))
        return any(self._url or mark.age > ours for mark in others)

    def _current_head(self) -> str:
        return self._github.pull(self._number).head_sha

    def _ours(self) -> list[Comment]:
        """Our own comments, the canonical one first. A mark in another's comment says nothing."""
        if self._author is None:
            self._author = self._login()
        found = [
            comment
            for comment in self._github.comments(self._number)
            if comment.author == self._author and is_marked(comment.body)
        ]
        return sorted(found, key=lambda comment: comment.id)

    def _login(self) -> str:
        try:
            return self._github.login() or JOB_LOGIN
        except ApiError as error:
            if error.kind not in ("forbidden", "gone"):
                raise
            return JOB_LOGIN

    def _create(self, drafts: Sequence[Draft]) -> str:
        """Post a comment; one whose answer was lost is looked for before it is posted again."""
        body = write(fitted([], drafts))
        for tries in range(TRIES):
            try:
                posted = self._github.create_comment(self._number, body)
            except ApiError as error:
                pause = error.pause(SETTLE)
                if pause is None or tries == TRIES - 1:
                    raise
                self._sleep(pause)
                found = [comment for comment in self._ours() if not _missing(drafts, [comment], self._head)]
                if found:
                    return found[0].url
            else:
                self._author = posted.author or self._author
                return posted.url
        raise AssertionError("the last try returns or raises")

    def _update(self, standing: Sequence[Comment], drafts: Sequence[Draft]) -> Comment | None:
        """Write the drafts and the sections of all our comments into the first; None when it is gone meanwhile."""
        kept = merge(_sections(standing), (), self._head)
        newer = _newer(kept, drafts)
        ours = [draft for draft in drafts if draft.mark.name not in newer]
        others = [section for section in kept if section.mark.name not in {draft.mark.name for draft in ours}]
        body = write(fitted(others, ours))
        try:
            return self._github.edit_comment(self._number, standing[0].id, body)
        except ApiError as error:
            if error.kind != "gone":
                raise
            return None

    def _again(self, comment: Comment) -> list[Comment]:
        """The comment as it stands now; all of ours when it is gone."""
        try:
            return [self._github.comment(self._number, comment.id)]
        except ApiError as error:
            if error.kind != "gone":
                raise
            return self._ours()

    def _remove(self, duplicates: Iterable[Comment]) -> None:
        for comment in duplicates:
            try:
                self._github.delete_comment(self._number, comment.id)
            except ApiError as error:
                if error.kind != "gone":  # another writer has removed it
                    raise


def _missing(drafts: Sequence[Draft], standing: Sequence[Comment], head: str, *, again: bool = False) -> bool:
    """Whether the canonical comment lacks a draft, or something newer in its place; `again` wants it newer."""
    if not standing:
        return True
    sections = read_sections(standing[0].body)
    found = {section.mark.name: section.mark.age for section in sections if section.mark.head == head}
    ages = [(found.get(draft.mark.name, (0, 0)), draft.mark.age) for draft in drafts]
    return any(there < ours or (again and there == ours) for there, ours in ages)


def _newer(kept: Iterable[Section], drafts: Iterable[Draft]) -> set[str]:
    """The names of those of which a newer section stands than the draft."""
    ages = {section.mark.name: section.mark.age for section in kept}
    return {d.mark.name for d in drafts if ages.get(d.mark.name, (0, 0)) > d.mark.age}


def _covers(canonical: Comment, duplicates: Iterable[Comment], head: str) -> bool:
    """Whether everything of the duplicates that still counts stands in the canonical comment."""
    ages = {section.mark.name: section.mark.age for section in merge(read_sections(canonical.body), (), head)}
    return all(
        ages.get(section.mark.name, (0, 0)) >= section.mark.age
        for comment in duplicates
        for section in read_sections(comment.body)
        if section.mark.head == head
    )


def _sections(comments: Iterable[Comment]) -> list[Section]:
    return [section for comment in comments for section in read_sections(comment.body)]
