"""Files, remotely: uploads and their records."""

from __future__ import annotations

from dataclasses import replace

from memgraph.client.calls import Call, Repeat, segment, value_of
from memgraph.client.places import Place
from memgraph.client.words import word
from memgraph.errors import InvalidInput
from memgraph.model.remote import IngestedFile, IngestPage, Uploaded

BYTES = "application/octet-stream"


class FeedingWords(Place):
    """The methods for files."""

    @word
    def upload(self, name: str, content: bytes) -> Call[Uploaded]:
        """Send a file; it is turned into memories in the background, within the key's bounds.

        Args:
            name: a file name that ends in .txt, .md or .json.
            content: the whole file, UTF-8. The same content is taken only once.

        Raises:
            IngestRejected, InvalidInput: it is no such file.
            RequestTooLarge: it exceeds the limit of ``memory.ingest``.
        """
        if not isinstance(content, bytes):
            raise InvalidInput("the content of a file is bytes", field="content")
        call = self._look(f"/ingest/files/{segment(name, field='name')}", {}, value_of(Uploaded))
        # Named by its content: a second one is the first.
        return replace(call, method="PUT", body=content, content_type=BYTES, repeat=Repeat.SAFE)

    @word
    def ingest_file(self, sha256: str) -> Call[IngestedFile]:
        """Return the record of a file, as far as the key may see it.

        Args:
            sha256: of its content, 64 hexadecimal digits.

        Returns:
            Its ``at`` is in milliseconds since the epoch, like every time of the library's values.

        Raises:
            NotFound: it was not dropped here, or is hidden from the key.
        """
        path = f"/ingest/files/{segment(sha256, field='sha256')}"
        return self._get(path, value_of(IngestedFile))

    @word
    def ingest_files(self, *, limit: int = 50, after: str | None = None) -> Call[IngestPage]:
        """Return processed files, latest first, that the key may see.

        Args:
            limit: 1..1,000.
            after: ``next_cursor`` of the page before.

        Raises:
            InvalidInput: a limit out of range; ``after`` is no cursor.
        """
        return self._get("/ingest/files", value_of(IngestPage), limit=limit, cursor=after)
