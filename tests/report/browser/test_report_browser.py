"""Pages in a real browser: figures are drawn, points answer to mouse, finger and keyboard, light, dark and small."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.preprocessing import StandardScaler

from widemargin import SVC, SVR, LinearSVC, LinearSVR, OneClassSVM
from widemargin.plots.grid import grid_fragment, grid_page
from widemargin.report.model_report import report_page
from widemargin.selection.grid_result import GridResult

DESK, PHONE = {"width": 1280, "height": 900}, {"width": 360, "height": 740}
CONTRAST = """() => {
  const part = (c) => (c /= 255, c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  const light = (colour) => {
    const [r, g, b] = colour.match(/[\\d.]+/g).map(Number);
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b) + 0.05;
  };
  const behind = (element) => {
    for (; element; element = element.parentElement) {
      const colour = getComputedStyle(element).backgroundColor;
      if (!colour.endsWith(", 0)")) return colour;
    }
  };
  const kinds = "h1,h2,h3,p,dt,dd,a,summary,button,th,td,li,.plot text:not([class*=' t'])";
  const texts = [...document.querySelectorAll(kinds)];
  return texts.filter((element) => element.checkVisibility()).map((element) => {
    const style = getComputedStyle(element), svg = element.tagName === "text";
    const pair = [light(svg ? style.fill : style.color), light(behind(element))].sort((a, b) => a - b);
    return [pair[1] / pair[0], element.textContent.slice(0, 40)];
  });
}"""

DRAWN = """() => [...document.querySelectorAll("figure")].map((figure) => {
  const svg = figure.querySelector("svg.plot"), {width, height} = svg.getBoundingClientRect();
  const sizes = [...svg.querySelectorAll(".m")].map((mark) => mark.getBBox()).map((box) => box.width + box.height);
  figure.querySelector("summary").click();
  const opened = figure.querySelector("tbody tr").checkVisibility();
  return [figure.id, width, height, Math.max(...sizes), opened];
})"""

GEOMETRY = """() => {
  const found = [];
  const meet = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 0.5
    && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1.5;
  const leaves = (box, frame) => box.left < frame.left - 1 || box.right > frame.right + 1
    || box.top < frame.top - 1 || box.bottom > frame.bottom + 1;
  for (const svg of document.querySelectorAll("svg.plot")) {
    const figure = svg.closest("figure").id, frame = svg.getBoundingClientRect();
    const texts = [...svg.querySelectorAll("text")].map((text) => [text.textContent, text.getBoundingClientRect()]);
    texts.forEach(([words, box], k) => {
      if (leaves(box, frame)) found.push(`${figure}: "${words}" is cut off`);
      for (const [others, other] of texts.slice(k + 1))
        if (meet(box, other)) found.push(`${figure}: "${words}" and "${others}" collide`);
    });
  }
  for (const head of document.querySelectorAll("th")) {
    const words = document.createRange(), place = head.closest(".scroll");
    words.selectNodeContents(head);
    if (leaves(words.getBoundingClientRect(), head.getBoundingClientRect()))
      found.push(`the head "${head.textContent}" is wider than its column`);
    if (innerWidth > 1000 && head.getBoundingClientRect().right > place.getBoundingClientRect().right + 1)
      found.push(`the head "${head.textContent}" is beyond its place`);
  }
  return [document.querySelectorAll("svg.plot text").length, found];
}"""


@pytest.fixture(scope="session")
def grid():
    """A grid over C and gamma, its best at C = 8 and gamma = 1/4."""
    points = tuple({"C": 2.0**c, "gamma": 2.0**g} for c in range(-1, 8, 2) for g in range(-8, 3, 2))
    means = [0.95 - 0.004 * (np.log2(p["C"] / 8) ** 2 + np.log2(p["gamma"] * 4) ** 2) for p in points]
    scores = np.array(means)[:, np.newaxis] + [-0.01, 0.0, 0.01]
    return GridResult(("C", "gamma"), points, scores, "accuracy", np.ones(len(points)))


@pytest.fixture(scope="session")
def pages(grid):
    """Reports of a linear classifier, a kernel machine of three classes with probabilities, and a regression."""
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    iris, diabetes = load_iris(return_X_y=True), load_diabetes(return_X_y=True)
    return {
        "linear": report_page(LinearSVC(C=0.01).fit(X, y), X, y, command="widemargin report m d"),
        "kernel": report_page(SVC(probability="libsvm", random_state=0).fit(*iris), *iris, grid=grid),
        "regression": report_page(LinearSVR(max_iter=10_000).fit(*diabetes), *diabetes),
    }


@pytest.fixture(scope="session")
def awkward(grid):
    """Pages whose numbers and names take much room: large and tiny targets, words, values close to each other."""
    iris, (X, y) = load_iris(return_X_y=True), load_diabetes(return_X_y=True)
    words = np.array(["a very long label of a class", "another one", "short"])[iris[1]]
    fine = tuple({"C": 2.0 ** (k / 4)} for k in range(-20, 21))
    narrow = 0.9 + 0.001 * np.random.default_rng(0).random((41, 3))
    mixed = tuple({"C": 10.0**k, "gamma": gamma} for k in range(-3, 9) for gamma in ("scale", 0.001, 0.02))
    errors = -1e5 * np.random.default_rng(1).random((36, 3))
    return {
        "large": report_page(SVR(C=1e6, epsilon=370.0).fit(X, 3.7e3 * y), X, 3.7e3 * y),
        "tiny": report_page(SVR(C=0.01, epsilon=1e-6).fit(X, 1e-5 * y), X, 1e-5 * y),
        "words": report_page(SVC(kernel="linear").fit(iris[0], words), iris[0], words),
        "one class": report_page(OneClassSVM(nu=0.2).fit(iris[0]), iris[0], np.where(iris[1] == 0, -1, 1)),
        "fine grid": grid_page(GridResult(("C",), fine, narrow, "accuracy", np.ones(41))),
        "mixed grid": grid_page(GridResult(("C", "gamma"), mixed, errors, "neg_mean_squared_error", np.ones(36))),
    }


@pytest.mark.parametrize("viewport", [DESK, PHONE], ids=["desk", "phone"])
def test_no_text_of_a_figure_touches_another_or_is_cut_off_and_heads_fit_their_columns(visit, pages, awkward, viewport):
    for name, text in {**pages, **awkward}.items():
        page = visit(text, viewport=viewport).page
        page.evaluate("document.querySelectorAll('details').forEach(details => (details.open = true))")
        n_texts, found = page.evaluate(GEOMETRY)
        assert n_texts > 10, name
        assert found == [], name


every_page = pytest.mark.parametrize("name", ["linear", "kernel", "regression"])


@every_page
def test_every_figure_is_drawn_and_every_table_opens(visit, pages, name):
    page = visit(pages[name], viewport=DESK).page
    figures = page.evaluate(DRAWN)
    assert len(figures) >= 6
    for figure, width, height, largest, opened in figures:
        assert width > 250, figure
        assert height > 150, figure
        assert largest > 10, figure
        assert opened, figure


@every_page
def test_a_phone_shows_everything_without_scrolling_sideways(visit, pages, name):
    page = visit(pages[name], viewport=PHONE, has_touch=True, is_mobile=True).page
    page.evaluate("document.querySelectorAll('details').forEach(details => (details.open = true))")
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert page.evaluate("visualViewport.scale") == 1
    sizes = page.locator(".plot text").evaluate_all(
        "texts => texts.map(t => parseFloat(getComputedStyle(t).fontSize) * t.getScreenCTM().a)"
    )
    assert min(sizes) >= 9.0
    heights = "targets => targets.map(target => target.getBoundingClientRect().height)"
    assert min(page.locator("summary, #theme, nav a").evaluate_all(heights)) >= 24


@every_page
def test_all_text_is_readable_in_light_and_dark(visit, pages, name):
    page = visit(pages[name], viewport=DESK).page
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        back = page.evaluate("getComputedStyle(document.documentElement).backgroundColor.match(/\\d+/g).map(Number)")
        assert max(back) < 40 if scheme == "dark" else min(back) > 230
        ratios = page.evaluate(CONTRAST)
        assert len(ratios) > 80
        assert min(ratios)[0] >= 4.5, (scheme, min(ratios))


def test_a_pointer_shows_the_point_that_it_is_on(visit, pages):
    seen = visit(pages["linear"], viewport=DESK)
    cells = seen.page.locator("#confusion rect.m")
    for k in range(4):
        cells.nth(k).hover()
        assert seen.tip == seen.row("confusion", k)
        assert seen.page.locator("[aria-live]").inner_text() == ", ".join(f"{n} {v}" for n, v in seen.tip.items())
    seen.page.mouse.move(2, 2)
    assert seen.tip is None


def test_a_pointer_between_points_finds_the_nearest(visit, pages):
    seen = visit(pages["regression"], viewport=DESK)
    svg = seen.page.locator("#truth svg.plot")
    svg.scroll_into_view_if_needed()
    spots = svg.evaluate(
        """svg => [...svg.querySelector(".m").getAttribute("d").matchAll(/M(\\S+) ([\\d.]+)/g)].map(([, x, y]) => {
             const at = new DOMPoint(+x, +y).matrixTransform(svg.getScreenCTM()); return [at.x, at.y]; })"""
    )
    spots = np.array(spots)
    for x, y in spots[[0, 100, 300]] + [3.0, -2.0]:
        seen.page.mouse.move(x, y)
        distances = np.hypot(*(spots - [x, y]).T)
        rows = [seen.row("truth", int(k)) for k in np.flatnonzero(distances < distances.min() + 0.2)]
        assert seen.tip in rows


def test_a_keyboard_walks_the_points_of_every_kind_of_figure(visit, pages):
    seen = visit(pages["kernel"], viewport=DESK)
    for figure in ("roc", "margins", "calibration", "convergence", "support", "grid"):
        n_rows = seen.page.locator(f"#{figure} tbody tr").count()
        seen.page.locator(f"#{figure} svg.plot").focus()
        for keys, k in (("Home", 0), ("ArrowRight", 1), ("End", n_rows - 1), ("ArrowRight", n_rows - 1)):
            seen.page.keyboard.press(keys)
            assert seen.tip == seen.row(figure, k), (figure, keys)
        said = ", ".join(f"{name} {value}" for name, value in seen.tip.items())
        assert seen.page.locator("[aria-live]").inner_text() == said
        seen.page.keyboard.press("Escape")
        assert seen.tip is None


def test_tab_goes_from_the_skip_link_to_the_figures(visit, pages):
    seen = visit(pages["linear"], viewport=DESK)
    seen.page.keyboard.press("Tab")
    skip = seen.page.locator(".skip")
    assert skip.bounding_box()["x"] > 0
    assert skip.evaluate("link => link === document.activeElement")
    reached = []
    for _ in range(30):
        seen.page.keyboard.press("Tab")
        figure = seen.page.evaluate("document.activeElement.matches('svg') && document.activeElement.parentNode.id")
        if figure:
            reached.append(figure)
            assert seen.tip == seen.row(figure, 0)
            assert seen.page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    assert reached == [
        "labels",
        "convergence",
        "confusion",
        "roc",
        "precision-recall",
        "margins",
        "features",
        "weights",
    ]


def test_arrows_go_up_and_down_in_a_matrix_and_from_curve_to_curve(visit, pages):
    seen = visit(pages["kernel"], viewport=DESK)
    seen.page.locator("#confusion svg.plot").focus()
    for key, k in (("Home", 0), ("ArrowDown", 3), ("ArrowRight", 4), ("ArrowUp", 1), ("ArrowUp", 1)):
        seen.page.keyboard.press(key)
        assert seen.tip == seen.row("confusion", k), key
    seen.page.locator("#roc svg.plot").focus()
    seen.page.keyboard.press("Home")
    first = seen.tip
    seen.page.keyboard.press("ArrowDown")
    assert (first["class"], seen.tip["class"]) == ("0", "1")


def test_a_finger_shows_a_point_inside_the_screen(visit, pages):
    seen = visit(pages["linear"], viewport=PHONE, has_touch=True, is_mobile=True)
    seen.page.locator("#confusion rect.m").nth(1).tap()
    assert seen.tip == seen.row("confusion", 1)
    box = seen.page.locator(".tip").bounding_box()
    assert 0 <= box["x"] < box["x"] + box["width"] <= PHONE["width"]


def test_the_button_changes_the_theme_and_it_is_remembered(visit, pages):
    seen = visit(pages["linear"], viewport=DESK, color_scheme="light")
    back = "getComputedStyle(document.documentElement).backgroundColor"
    light = seen.page.evaluate(back)
    seen.page.get_by_role("button", name="Dark").click()
    dark = seen.page.evaluate(back)
    assert dark != light
    assert seen.page.locator("#theme").inner_text() == "Light"
    seen.page.reload()
    assert seen.page.evaluate(back) == dark
    seen.page.get_by_role("button", name="Light").click()
    assert seen.page.evaluate(back) == light
    seen.addresses.pop()  # the reload


def test_paper_is_light_and_has_no_buttons(visit, pages):
    page = visit(pages["linear"], viewport=DESK, color_scheme="dark").page
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") == "rgb(244, 246, 248)"
    assert not page.locator("#theme").is_visible()
    assert page.locator("#roc svg.plot").is_visible()


def test_a_hostile_page_runs_nothing(visit):
    X, y = load_iris(return_X_y=True)
    hostile = '"><img src=x onerror="document.title=1"><script>document.title=2</script>'
    labels = np.array([f"{hostile}{k}" for k in range(3)])[y]
    text = report_page(LinearSVC().fit(X, labels), X, labels, title=hostile, model_name=hostile, command=hostile)
    seen = visit(text, viewport=DESK)
    seen.page.locator("#confusion rect.m").first.hover()
    assert seen.tip["true class"] == f"{hostile}0"
    assert seen.page.title() == hostile
    assert seen.page.locator("img").count() == 0


# Grids


def test_a_grid_shows_each_point_and_sorts_its_table(visit, grid):
    seen = visit(grid_page(grid), viewport=DESK)
    cells = seen.page.locator("#grid rect.m")
    assert cells.count() == 30
    cells.nth(12).hover()
    assert seen.tip == {
        "C": "8", "gamma": "0.25", "accuracy": "95.00%", "deviation": "0.816%", "folds": "94.00%, 95.00%, 96.00%",
    }  # fmt: skip
    rows = seen.page.locator(".sortable tbody tr")
    assert rows.first.locator("td").all_inner_texts()[:3] == ["8", "0.25", "95.00%"]
    for backwards in (True, False, True):
        seen.page.get_by_role("button", name="gamma").click()
        found = [float(text) for text in seen.page.locator(".sortable tbody td:nth-child(2)").all_inner_texts()]
        assert found == sorted(found, reverse=backwards)
    assert seen.page.locator("th[aria-sort]").count() == 1


def test_two_grids_in_a_notebook_work_side_by_side(visit, grid):
    other = GridResult(grid.names, grid.points[:12], grid.scores[:12], "f1", grid.seconds[:12])
    around = "<!doctype html><title>notebook</title><p id=out style='font:20px serif;color:red'>42</p>"
    seen = visit(around + grid_fragment(grid) + grid_fragment(other), viewport=DESK)
    for k, name in ((0, "accuracy"), (1, "f1")):
        root = seen.page.locator(".wm").nth(k)
        root.locator("rect.m").nth(3).hover()
        assert root.locator(".tip.on").inner_text().splitlines()[4] == name
        assert root.locator(".tip.on").bounding_box()["y"] < root.locator("rect.m").nth(3).bounding_box()["y"]


def test_a_fragment_follows_the_theme_of_a_notebook(visit, grid):
    dark = "<!doctype html><title>notebook</title><body data-jp-theme-light=false>"
    card = "getComputedStyle(document.querySelector('.card')).backgroundColor"
    assert visit(dark + grid_fragment(grid), color_scheme="light").page.evaluate(card) == "rgb(23, 28, 35)"
    light = dark.replace("false", "true")
    assert visit(light + grid_fragment(grid), color_scheme="dark").page.evaluate(card) == "rgb(255, 255, 255)"
