"""The dictionary of feedparser: keys are attributes, and old names of keys lead to new ones."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from ._native import Document

#: Other names of keys; of several, the first that is there.
_ALIASES: dict[str, tuple[str, ...]] = {
    "channel": ("feed",),
    "copyright": ("rights",),
    "copyright_detail": ("rights_detail",),
    "date": ("updated",),
    "date_parsed": ("updated_parsed",),
    "description": ("summary", "subtitle"),
    "description_detail": ("summary_detail", "subtitle_detail"),
    "guid": ("id",),
    "issued": ("published",),
    "issued_parsed": ("published_parsed",),
    "items": ("entries",),
    "modified": ("updated",),
    "modified_parsed": ("updated_parsed",),
    "tagline": ("subtitle",),
    "tagline_detail": ("subtitle_detail",),
    "url": ("href",),
}

#: Keys whose value follows from that of others.
_DERIVED = ("category", "enclosures", "license")

#: What stands for a date that is missing.
_FALLBACKS = {"updated": "published", "updated_parsed": "published_parsed"}


class FeedParserDict(dict[str, Any]):
    """A dictionary whose keys are attributes too."""

    def __getitem__(self, key: str) -> Any:
        has = super().__contains__
        if has(key):
            return super().__getitem__(key)
        for name in _ALIASES.get(key, ()):
            if has(name):
                return super().__getitem__(name)
        if key in _DERIVED:
            return self._derived(key)
        fallback = _FALLBACKS.get(_ALIASES.get(key, (key,))[0])
        if fallback and has(fallback):
            warnings.warn(
                f"there is no {key!r}; {fallback!r} is used", DeprecationWarning, stacklevel=2
            )
            return super().__getitem__(fallback)
        raise KeyError(key)

    def _derived(self, key: str) -> Any:
        links = super().__getitem__("tags" if key == "category" else "links")
        if key == "category":
            if links and "term" in links[0]:
                return links[0]["term"]
        elif key == "enclosures":
            enclosures = (link for link in links if link.get("rel") == "enclosure")
            return [
                FeedParserDict((name, value) for name, value in link.items() if name != "rel")
                for link in enclosures
            ]
        else:
            for link in links:
                if link.get("rel") == "license" and "href" in link:
                    return link["href"]
        raise KeyError(key)

    def __contains__(self, key: object) -> bool:
        if super().__contains__(key):
            return True
        if not isinstance(key, str) or key in _FALLBACKS:
            return False
        if any(super(FeedParserDict, self).__contains__(name) for name in _ALIASES.get(key, ())):
            return True
        if key not in _DERIVED:
            return False
        try:
            self._derived(key)
        except KeyError:
            return False
        return True

    has_key = __contains__

    def get(self, key: str, default: Any = None) -> Any:
        try:
            return self[key]
        except KeyError:
            return default

    def __setitem__(self, key: str, value: Any) -> None:
        super().__setitem__(_ALIASES.get(key, (key,))[0], value)

    def setdefault(self, key: str, default: Any = None) -> Any:
        if key not in self:
            self[key] = default
        return self[key]

    def __getattr__(self, key: str) -> Any:
        try:
            return self[key]
        except KeyError:
            raise AttributeError(f"object has no attribute {key!r}") from None

    def __hash__(self) -> int:  # type: ignore[override]
        return id(self)

    def __reduce__(self) -> Any:
        return _restored, (dict(dict.items(self)),)


def _restored(items: dict[str, Any]) -> FeedParserDict:
    """Returns a dictionary with these keys, none of which is taken for an old name."""
    made = FeedParserDict()
    dict.update(made, items)
    return made


class _UnreadEntry(FeedParserDict):
    """An entry that was not used yet. With its first use it is filled, and becomes a plain
    ``FeedParserDict``."""


#: The only key of an unread entry: ``json`` takes a dictionary without any for an empty one.
_UNREAD = ""


def unread_entry(document: Document, index: int) -> FeedParserDict:
    """Returns the entry with this number."""
    entry = _UnreadEntry()
    dict.__setitem__(entry, _UNREAD, None)
    entry.__dict__["_source"] = (document, index)
    return entry


def _fill(entry: FeedParserDict) -> None:
    source = entry.__dict__.get("_source")
    if source is not None:
        # Filled in one step, by the first of several threads.
        document, index = source
        document.fill_entry(index, entry)
        dict.pop(entry, _UNREAD, None)
        entry.__dict__.pop("_source", None)
    entry.__class__ = FeedParserDict


def _filling(name: str) -> Callable[..., Any]:
    def method(self: FeedParserDict, *args: Any, **kwargs: Any) -> Any:
        _fill(self)
        return getattr(FeedParserDict, name)(self, *args, **kwargs)

    return method


for _name in (
    "__contains__",
    "__delitem__",
    "__eq__",
    "__getattr__",
    "__getitem__",
    "__ior__",
    "__iter__",
    "__len__",
    "__ne__",
    "__or__",
    "__reduce_ex__",
    "__repr__",
    "__reversed__",
    "__ror__",
    "__setitem__",
    "clear",
    "copy",
    "get",
    "has_key",
    "items",
    "keys",
    "pop",
    "popitem",
    "setdefault",
    "update",
    "values",
):
    setattr(_UnreadEntry, _name, _filling(_name))
