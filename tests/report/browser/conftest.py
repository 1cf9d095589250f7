"""Pages of reports as files in a browser, and what it says about them."""

import pytest


class Visit:
    """A page that is open, and what happened meanwhile: complaints of the browser, addresses that were asked for."""

    def __init__(self, browser, address, **options):
        self.context = browser.new_context(reduced_motion="reduce", **options)
        self.page = self.context.new_page()
        self.page.set_default_timeout(5_000)
        self.complaints, self.addresses = [], []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.addresses.append(request.url))
        self.page.goto(address)

    @property
    def tip(self):
        """The text of the tip, name and value of each line; None if it is hidden."""
        tip = self.page.locator(".tip.on")
        return dict(map(str.splitlines, tip.locator("div").all_inner_texts())) if tip.count() else None

    def row(self, figure, k):
        """Return row k of the table of a figure, by the heads."""
        return self.page.locator(f"#{figure} .data").evaluate(
            """(table, k) => Object.fromEntries([...table.tHead.rows[0].cells].map(
               (head, j) => [head.textContent, table.tBodies[0].rows[k].cells[j].textContent.trim()]))""",
            k,
        )


@pytest.fixture
def visit(browser, tmp_path):
    """Return a function that opens HTML in the browser as a file; whatever the test, nobody may have complained."""
    visits = []

    def visit(text, **options):
        path = tmp_path / f"{len(visits)}.html"
        path.write_text(text, "utf-8")
        visits.append((Visit(browser, path.as_uri(), **options), path.as_uri()))
        return visits[-1][0]

    yield visit
    for made, address in visits:
        made.context.close()
        assert made.complaints == []
        assert made.addresses == [address]
