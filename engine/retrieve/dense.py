"""Which passages the dense search looks at: all of them, or in a large collection those that the index names.

Up to `index.NEEDED_FROM` passages every cosine is computed: that is exact and takes less than embedding the question.
Above, and whenever a Chroma server is named, the index gives `POOL` times k candidates and their cosines are computed
from our own vectors, so that an approximate index can leave a passage out but never gives a wrong score.
"""

from __future__ import annotations

import logging
import os

import numpy as np
from numpy.typing import NDArray

from engine.corpus import index
from engine.corpus.collection import Collection
from engine.corpus.store import Snapshot
from engine.errors import CorpusLocked, ServerError, StorageError
from engine.models.protocols import Floats

log = logging.getLogger(__name__)
POOL = 10  # candidates a wanted passage
_LEAST = 200  # candidates


def candidate_rows(collection: Collection, snapshot: Snapshot, vector: Floats, k: int) -> NDArray[np.intp] | None:
    """Rows of the snapshot to score, ascending; None for all of them.

    Where the index cannot be had (not in step, held by another process, the server is down) all passages are scored:
    slower, never wrong; the reason is logged. A search never builds an index: ingest and the health check do.
    """
    size = len(snapshot.passages)
    count = max(POOL * k, _LEAST)
    if count >= size or (size <= index.NEEDED_FROM and not os.environ.get(index.SERVER)):
        return None
    try:
        return index.open_index(collection.folder, snapshot, build=False).nearest(vector, count)
    except index.NotReady as error:
        log.debug("Searching without the index: %s", error)
        return None
    except (CorpusLocked, ServerError, StorageError) as error:
        log.warning("Searching without the index: %s", error)
        return None
