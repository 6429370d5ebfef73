# A memgraph server: not root, and nothing is written but /var/lib/memgraph and /tmp.
FROM python:3.11-slim AS build
COPY . /source
RUN python -m venv /opt/memgraph \
    && /opt/memgraph/bin/pip install --no-cache-dir --constraint /source/constraints.txt \
        '/source[server,client,postgres]'

FROM python:3.11-slim
RUN groupadd --gid 10001 memgraph \
    && useradd --uid 10001 --gid 10001 --home-dir /var/lib/memgraph --create-home memgraph \
    && chmod 0700 /var/lib/memgraph
COPY --from=build /opt/memgraph /opt/memgraph
ENV PATH=/opt/memgraph/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    MEMGRAPH_ROOT=/var/lib/memgraph
USER 10001:10001
WORKDIR /var/lib/memgraph
VOLUME /var/lib/memgraph
EXPOSE 8420
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8420/healthz', timeout=4)"]
ENTRYPOINT ["memgraph"]
CMD ["serve", "--host", "0.0.0.0"]
