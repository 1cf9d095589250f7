"""Lists in words, for messages."""


def listed(names, shown=repr):
    """Return names joined by commas and `or`, each formatted by the function `shown`, which by default adds quotes."""
    texts = [shown(name) for name in names]
    return " or ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)
