"""One model is read at a time: `with LOADING:` around everything that imports from transformers and reads a model."""

import threading

# While transformers reads a model it builds it on the meta device by switches of the whole process: two threads that
# read at once give "Cannot copy out of meta tensor". Its lazy imports fail in the same way. Reentrant, since one
# model may be read within another's load.
LOADING = threading.RLock()
