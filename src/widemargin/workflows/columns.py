"""Results as text: names and facts in two aligned columns."""


def columns(facts):
    """Return facts as lines of two aligned columns."""
    width = max(map(len, facts))
    return "\n".join(f"{name:<{width}}  {fact}" for name, fact in facts.items())


def count(number, thing, things=None):
    """Return a number and its noun: `no rows`, `1 row`, `2 rows`."""
    return f"{number or 'no'} {thing if number == 1 else things or thing + 's'}"
