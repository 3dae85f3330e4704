"""One file a format: bytes or a path in, documents with offsets out."""
