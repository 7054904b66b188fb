"""OPEN: which texts a query means: BM25 (Robertson and Zaragoza, 2009), without embeddings."""

import math
import re
from collections import Counter
from collections.abc import Sequence

K1 = 1.5
B = 0.75

_WORD = re.compile(r"[a-z]+|[0-9]+")


def words(text: str) -> list[str]:
    """The words and numbers of a text in lower case; names such as `go_to` and `goTo` fall apart."""
    return _WORD.findall(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text).lower())


def rank(query: str, texts: Sequence[str]) -> list[tuple[int, float]]:
    """(place, score) of each text that shares a word with the query, best first; equals latest first."""
    documents = [Counter(words(text)) for text in texts]
    lengths = [sum(document.values()) for document in documents]
    mean = sum(lengths) / len(lengths) if any(lengths) else 1.0
    scores = [0.0] * len(documents)
    for word in dict.fromkeys(words(query)):
        holders = [place for place, document in enumerate(documents) if word in document]
        # Inverse document frequency, with one added so that a word that most texts hold never counts against.
        rarity = math.log(1 + (len(documents) - len(holders) + 0.5) / (len(holders) + 0.5))
        for place in holders:
            count = documents[place][word]
            scores[place] += rarity * count * (K1 + 1) / (count + K1 * (1 - B + B * lengths[place] / mean))
    found = [(place, score) for place, score in enumerate(scores) if score > 0]
    return sorted(found, key=lambda one: (-one[1], -one[0]))
