"""One repository on GitHub, behind as few calls as we need. PyGithub is imported when the first is made."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from oloproof_ci.github.errors import LONGEST_WAIT, ApiError, api_error

if TYPE_CHECKING:
    from github.IssueComment import IssueComment
    from github.PullRequest import PullRequest as GithubPullRequest
    from github.Repository import Repository

#: Seconds that one request may take, and how often a status is set before that is given up.
TIMEOUT = 15
TRIES = 3
#: What is asked again by itself: a POST is not, since it may have been carried out.
_REPEATABLE = frozenset({"GET", "HEAD", "PATCH", "DELETE"})
_TRANSIENT = (429, 500, 502, 503, 504)


@dataclass(frozen=True)
class Comment:
    """A comment as it stands. `author` is a login, empty for an account that is gone."""

    id: int
    author: str
    body: str
    url: str


@dataclass(frozen=True)
class Pull:
    """A pull request as it is now. `head_repository` is empty when the fork is gone."""

    number: int
    open: bool
    head_sha: str
    head_ref: str
    head_repository: str
    base_sha: str
    base_ref: str
    from_fork: bool


class GitHub:
    """Statuses, pull requests and comments of one repository. Every call raises ApiError when GitHub does not do it.

    `backoff` is the unit of seconds between tries, which doubles.
    """

    def __init__(
        self, token: str, api_url: str, repository: str, backoff: float = 1.0, timeout: int = TIMEOUT
    ) -> None:
        self._token = token
        self._api_url = api_url
        self._name = repository
        self._backoff = backoff
        self._timeout = timeout

    def set_status(self, sha: str, state: str, context: str, description: str, url: str) -> str:
        """Set a commit's status; gives the login that it was set by, which is whose token this is. When the answer is
        lost it is set again: the same status twice is one."""
        for tries in range(TRIES):
            try:
                return self._set_status(sha, state, context, description, url)
            except ApiError as error:
                pause = error.pause(self._backoff * 2**tries)
                if pause is None or tries == TRIES - 1:
                    raise
                time.sleep(pause)
        raise AssertionError("the last try returns or raises")

    def status_url(self, sha: str, context: str) -> str:
        """Where the newest status of that name on a commit leads; empty when there is none."""
        with _telling():
            found = self._repository.get_commit(sha).get_combined_status().statuses
            return next((each.target_url or "" for each in found if each.context == context), "")

    def _set_status(self, sha: str, state: str, context: str, description: str, url: str) -> str:
        with _telling():
            commit = self._repository.get_commit(sha)
            status = commit.create_status(state, url, description, context)
            return status.creator.login if status.creator else ""

    def login(self) -> str:
        """Whose token this is. An installation, such as the job's own token, may not ask."""
        with _telling():
            return str(self._github.get_user().login)

    def pull(self, number: int) -> Pull:
        with _telling():
            found = self._repository.get_pull(number)
            return _pull(found, self._name)

    def pulls_from(self, repository: str, branch: str) -> list[Pull]:
        """The open pull requests of a head branch."""
        owner = repository.partition("/")[0]
        with _telling():
            found = self._repository.get_pulls(state="open", head=f"{owner}:{branch}")
            return [_pull(each, self._name) for each in found]

    def comments(self, number: int) -> list[Comment]:
        """All comments of a pull request, oldest first."""
        with _telling():
            return [_comment(each) for each in self._repository.get_issue(number).get_comments()]

    def comment(self, number: int, comment_id: int) -> Comment:
        with _telling():
            found = self._repository.get_issue(number).get_comment(comment_id)
            found.complete()
            return _comment(found)

    def create_comment(self, number: int, body: str) -> Comment:
        """Post a comment. After an ApiError whose `written` is set it may be there all the same."""
        with _telling():
            return _comment(self._repository.get_issue(number).create_comment(body))

    def edit_comment(self, number: int, comment_id: int, body: str) -> Comment:
        with _telling():
            found = self._repository.get_issue(number).get_comment(comment_id)
            found.edit(body)
            return _comment(found)

    def delete_comment(self, number: int, comment_id: int) -> None:
        with _telling():
            self._repository.get_issue(number).get_comment(comment_id).delete()

    @cached_property
    def _github(self):  # type: ignore[no-untyped-def]
        if not self._token:
            raise ApiError("unauthorized", "there is no token")
        from github import Auth, Github, GithubRetry

        retry = GithubRetry(
            total=3,
            backoff_factor=self._backoff,
            allowed_methods=_REPEATABLE,
            status_forcelist=list(_TRANSIENT),
            raise_on_status=False,
            retry_after_max=LONGEST_WAIT,
            secondary_rate_wait=LONGEST_WAIT,
            max_rate_limit_wait=LONGEST_WAIT,
        )
        return Github(
            auth=Auth.Token(self._token),
            base_url=self._api_url,
            timeout=self._timeout,
            per_page=100,
            retry=retry,
            seconds_between_requests=None,
            seconds_between_writes=None,
            user_agent="oloproof-ci",
            lazy=True,
        )

    @cached_property
    def _repository(self) -> Repository:
        return self._github.get_repo(self._name)  # type: ignore[no-any-return]


@contextmanager
def _telling() -> Iterator[None]:
    """Whatever PyGithub and what lies below it raise, as ApiError."""
    from github import GithubException
    from requests import RequestException

    try:
        yield
    except ApiError:
        raise
    except GithubException as error:
        raise api_error(error.status, error.data, error.headers) from error
    except RequestException as error:
        raise ApiError("unreachable", type(error).__name__, written=True) from error
    except Exception as error:
        # PyGithub expects JSON of a certain form from a host of a certain name; a proxy's page is neither, and what it
        # then raises is of many types.
        raise ApiError("unexpected", "the answer is not one of GitHub's API", written=True) from error


def _comment(found: IssueComment) -> Comment:
    if not isinstance(found.id, int):  # PyGithub makes a comment of any page, with nothing in it
        raise TypeError("no comment")
    author = found.user.login if found.user else ""
    return Comment(found.id, author, found.body or "", found.html_url or "")


def _pull(found: GithubPullRequest, repository: str) -> Pull:
    source = found.head.repo.full_name if found.head.repo else ""
    return Pull(
        number=found.number,
        open=found.state == "open",
        head_sha=found.head.sha,
        head_ref=found.head.ref,
        head_repository=source,
        base_sha=found.base.sha,
        base_ref=found.base.ref,
        from_fork=source.lower() != repository.lower(),
    )
