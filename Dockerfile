# The image of Kerf: the controller (`kerf run`), the webhook (`kerf webhook`) and every other verb of the command.
# docs/images.md says how to build, check and push it; `make image` runs the command.
#
# Nothing is compiled and nothing of the target platform is run: every dependency comes as a wheel, so a machine of either
# architecture builds both without an emulator. Paths are relative to the folder of a stage, so that `python -m image`
# can play the same lines without a container engine, for the SBOM, the licences and the tests.

# The full version says which Python and which Debian these are; a rebuild of the same tag (Debian's updates) has another
# digest. A release that is to be built again to the byte, or from a mirror, gives it: --build-arg BASE_DIGEST=@sha256:…
ARG BASE_IMAGE=python:3.11.15-slim-trixie
ARG BASE_DIGEST=
ARG VERSION=0.1.0

# As the target platform has it; it is only copied from.
FROM ${BASE_IMAGE}${BASE_DIGEST} AS base

# As the machine has it that builds; its pip is not in the image.
FROM --platform=${BUILDPLATFORM} ${BASE_IMAGE}${BASE_DIGEST} AS tools
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore PYTHONDONTWRITEBYTECODE=1
WORKDIR /build

# Debian and Python without what installs Python packages, and without programs that give rights to who runs them. The
# base image has no bytecode; with a read-only file system nobody could keep it, and each start would compile the
# standard library again. Unchecked: the files never change, so nothing needs to look whether they have.
FROM tools AS system
COPY --from=base / system/
RUN set -eux; \
    rm -rf system/usr/local/lib/python3*/site-packages/* system/usr/local/lib/python3*/ensurepip \
        system/usr/local/include system/usr/local/bin/pip* system/usr/local/bin/wheel; \
    find system -type f -perm /6000 -exec chmod a-s {} +; \
    echo 'kerf:x:65532:65532:Kerf:/nonexistent:/usr/sbin/nologin' >> system/etc/passwd; \
    echo 'kerf:x:65532:' >> system/etc/group; \
    python3 -m compileall -q -j 0 --invalidation-mode unchecked-hash -s system -p / system/usr/local/lib

# What pyproject.toml asks for, in the versions of constraints.txt. Where packages come from is pip's configuration: by
# itself the public index, else a file that is there for this step alone (docs/images.md).
FROM tools AS dependencies
ARG TARGETARCH
COPY constraints.txt pyproject.toml ./
RUN --mount=type=secret,id=pip,target=/etc/pip.conf --mount=type=secret,id=ca \
    --mount=type=cache,target=/root/.cache/pip \
    set -eux; \
    case "${TARGETARCH}" in \
        amd64) machine=x86_64 ;; \
        arm64) machine=aarch64 ;; \
        *) echo "there are no wheels for ${TARGETARCH}: build for linux/amd64 or linux/arm64" >&2; exit 1 ;; \
    esac; \
    site="dependencies/usr/local/lib/$(python3 -c 'import sys; print("python%d.%d" % sys.version_info[:2])')/site-packages"; \
    python3 -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"], sep="\n")' \
        > requirements.txt; \
    python3 -m pip install --no-compile --target "${site}" --only-binary :all: \
        --platform "manylinux_2_28_${machine}" --platform "manylinux_2_17_${machine}" --platform "manylinux2014_${machine}" \
        --constraint constraints.txt --requirement requirements.txt; \
    rm -rf "${site:?}/bin"; \
    python3 -m compileall -q -j 0 --invalidation-mode unchecked-hash -s dependencies -p / dependencies/usr/local/lib

# Kerf itself, as a wheel: in the image it is installed as anywhere else. pip writes the path of the Python that runs it
# into programs; here it is that of the image.
FROM tools AS project
ARG VERSION
COPY constraints.txt pyproject.toml LICENSE README.md ./
COPY api api/
COPY reconciler reconciler/
COPY webhook webhook/
RUN --mount=type=secret,id=pip,target=/etc/pip.conf --mount=type=secret,id=ca \
    --mount=type=cache,target=/root/.cache/pip \
    set -eux; \
    site="project/usr/local/lib/$(python3 -c 'import sys; print("python%d.%d" % sys.version_info[:2])')/site-packages"; \
    python3 -m pip install --target hatchling --constraint constraints.txt hatchling; \
    PYTHONPATH=hatchling python3 -m pip wheel --no-deps --no-build-isolation --wheel-dir wheels .; \
    python3 -m pip install --no-index --no-deps --no-compile --target "${site}" "wheels/kerf-${VERSION}-py3-none-any.whl"; \
    mkdir -p project/usr/local/bin; \
    for program in kerf kubectl-kerf kubectl_complete-kerf; do \
        sed '1s|.*|#!/usr/local/bin/python3|' "${site}/bin/${program}" > "project/usr/local/bin/${program}"; \
        chmod 755 "project/usr/local/bin/${program}"; \
    done; \
    rm -rf "${site:?}/bin"; \
    python3 -m compileall -q -j 0 --invalidation-mode unchecked-hash -s project -p / project/usr/local/lib

# Three layers, from what changes least: a new version of Kerf alone brings a node only the last.
FROM scratch
COPY --from=system /build/system/ /
COPY --from=dependencies /build/dependencies/ /
COPY --from=project /build/project/ /
ARG BASE_IMAGE
ARG VERSION
# The commit, with `-dirty` at its end if the tree was changed: logs and karpenter_build_info tell it.
ARG REVISION=
LABEL org.opencontainers.image.title="Kerf" \
      org.opencontainers.image.description="A node autoscaler for Kubernetes on AWS that speaks the Karpenter v1 API" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.base.name="${BASE_IMAGE}"
ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    LANG=C.UTF-8 \
    PYTHONDONTWRITEBYTECODE=1 \
    KERF_COMMIT="${REVISION}"
USER 65532:65532
EXPOSE 8080 8081 8443 8444
ENTRYPOINT ["/usr/local/bin/kerf"]
CMD ["--help"]
