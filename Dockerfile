# The action's image. Plain Dockerfile syntax: an action that is built where it is used may meet the classic builder.
FROM python:3.13-slim-trixie AS dependencies

ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
COPY requirements.lock /build/requirements.lock
# The packages' own tests are half of their size and are never run here. Byte code is made once for all; nothing could
# write it later.
RUN python -m venv --without-pip /opt/oloproof \
    && pip --python /opt/oloproof/bin/python install --require-hashes --only-binary :all: --no-compile \
        --requirement /build/requirements.lock \
    && find /opt/oloproof/lib -depth -type d -name tests -exec rm -rf {} + \
    && /opt/oloproof/bin/python -m compileall -q -j 0 --invalidation-mode unchecked-hash /opt/oloproof/lib \
    && /opt/oloproof/bin/python -c 'import numpy, scipy.special, scipy.optimize, pydantic, github' \
    && echo /opt/oloproof/packages > "$(/opt/oloproof/bin/python -c 'import site; print(site.getsitepackages()[0])')/oloproof.pth"


FROM python:3.13-slim-trixie AS packages

COPY oloproof /opt/oloproof/packages/oloproof
COPY oloproof_ci /opt/oloproof/packages/oloproof_ci
RUN find /opt/oloproof/packages -depth -type d -name __pycache__ -exec rm -rf {} + \
    && python -m compileall -q -j 0 --invalidation-mode unchecked-hash /opt/oloproof/packages


FROM python:3.13-slim-trixie

# Code of a pull request runs in this container as a user of its own: no program may lend it another one. The standard
# library comes without byte code, and a worker could not write it.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends git \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt /var/cache/debconf /var/log/apt /var/log/dpkg.log \
    && find / -xdev -type f -perm /6000 -exec chmod a-s {} + \
    && python -m compileall -q -j 0 -x '/(test|tests|site-packages|dist-packages)/' \
        "$(python -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')"

COPY --from=dependencies /opt/oloproof /opt/oloproof
COPY --from=packages /opt/oloproof/packages /opt/oloproof/packages

ARG VERSION=dev
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Oloproof CI" \
      org.opencontainers.image.description="Stage-level evaluation of RAG systems, and a gate for pull requests" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"

# -P: whatever folder the container starts in, nothing of it is imported. The workspace is a pull request's.
ENTRYPOINT ["/opt/oloproof/bin/python", "-P", "-m", "oloproof_ci", "action"]
