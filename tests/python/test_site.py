"""The documentation's site in a browser, on a wide and on a narrow screen: links, pictures, menu, search, tables.

The browser is offline, so that whatever the site would fetch from elsewhere fails here. Debian's package
chromium-headless-shell serves, which tools/system_packages --tests installs, or any Chromium in the path, or the one of
`python -m playwright install --only-shell chromium`.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urlparse

import pytest

playwright_api = pytest.importorskip("playwright.sync_api")

SCREENS = {"wide": (1440, 900), "narrow": (390, 844)}

# Sphinx writes these; no page links to the first two.
UNLINKED = ("genindex.html", "py-modindex.html", "search.html")

# What is wrong with a page as it is laid out: pictures that are not there, and what is wider than the screen.
LOOK = """() => {
  const problems = [];
  for (const image of document.images)
    if (!image.complete || image.naturalWidth === 0) problems.push(`no picture: ${image.src}`);
    else if (image.getBoundingClientRect().right > innerWidth + 1) problems.push(`cut off: ${image.src}`);
  const width = document.documentElement.scrollWidth;
  if (width > innerWidth + 1) problems.push(`${width} pixels wide`);
  for (const table of document.querySelectorAll("article table")) {
    if (table.rows.length < 2) problems.push("a table without rows");
    const around = table.closest(".table-wrapper");
    if (!around || around.getBoundingClientRect().right > innerWidth + 1) problems.push("a table that is cut off");
  }
  return {
    problems,
    links: [...document.querySelectorAll("a[href]")].map((link) => link.href),
    anchors: [...document.querySelectorAll("[id]")].map((element) => element.id),
  };
}"""


def file_of(url: str) -> Path:
    return Path(unquote(urlparse(url).path))


def chromium(playwright: Any) -> str | None:
    for name in ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"):
        # Ubuntu's is a snap, which sees no temporary folder.
        if (path := shutil.which(name)) and not os.path.realpath(path).startswith("/snap"):
            return path
    own = playwright.chromium.executable_path
    return own if Path(own).exists() else None


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright_api.sync_playwright() as playwright:
        path = chromium(playwright)
        if path is None:
            pytest.skip(
                "there is no browser: tools/system_packages --tests installs Debian's chromium-headless-shell; elsewhere "
                "`python -m playwright install --only-shell chromium` brings one"
            )
        # Root, as in a container, cannot have a sandbox.
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"] if os.getuid() == 0 else [])
        yield browser
        browser.close()


@pytest.fixture(params=SCREENS)
def page(browser, request) -> Iterator[Any]:
    """An empty page on one of the screens. At the end, nothing may have gone wrong in it."""
    width, height = SCREENS[request.param]
    context = browser.new_context(viewport={"width": width, "height": height}, offline=True)
    page = context.new_page()
    problems: list[str] = []

    def note(problem: str) -> None:
        problems.append(f"{page.url}: {problem}")

    def note_message(message: Any) -> None:
        if message.type == "error":
            note(message.text)

    def note_request(sent: Any) -> None:
        if sent.url.startswith("http"):
            note(f"loads {sent.url}")

    page.on("pageerror", lambda error: note(str(error)))
    page.on("console", note_message)
    page.on("requestfailed", lambda failed: note(f"cannot load {failed.url}"))
    page.on("request", note_request)
    page.is_narrow = request.param == "narrow"
    yield page
    context.close()
    assert problems == []


def test_pages_links_pictures_and_widths(site, page):
    """Every page of the site is two clicks from the first at most, what it shows fits the screen, and what it links to
    exists."""
    found: dict[str, dict[str, Any]] = {}
    clicks = 0
    waiting = {(site / "index.html").as_uri()}
    while waiting:
        linked: set[str] = set()
        for url in waiting:
            page.goto(url)
            found[url] = {"clicks": clicks, **page.evaluate(LOOK)}
            linked |= {urldefrag(link)[0] for link in found[url]["links"] if link.startswith("file:")}
        clicks += 1
        waiting = {url for url in linked if url.endswith(".html") and file_of(url).exists()} - found.keys()
    problems = [f"{url}: {problem}" for url, looked in found.items() for problem in looked["problems"]]
    for url, looked in found.items():
        if looked["clicks"] > 2:
            problems.append(f"{url} is {looked['clicks']} clicks from the first page")
        for link in sorted(set(looked["links"])):
            target, anchor = urldefrag(link)
            if not link.startswith("file:"):
                continue
            if not file_of(target).is_file():
                problems.append(f"{url} links to {target}, which is not there")
            elif anchor and target in found and unquote(anchor) not in found[target]["anchors"]:
                problems.append(f"{url} links to {link}, a place that is not there")
    assert problems == []
    assert {path.as_uri() for path in site.rglob("*.html") if path.name not in UNLINKED} - found.keys() == set()


def test_the_menu_has_the_names_that_readers_look_for(site, page):
    page.goto((site / "index.html").as_uri())
    if page.is_narrow:
        page.locator(".nav-overlay-icon").click()
    menu = page.locator(".sidebar-tree")
    menu.wait_for(state="visible")
    page.wait_for_function("document.querySelector('.sidebar-tree').getBoundingClientRect().left >= 0")
    names = re.sub(r"\s*\n\s*", "\n", menu.inner_text().lower()).split("\n")
    wanted = [
        "Installation",
        "Quickstart",
        "Tutorial",
        "Gallery",
        "GPU",
        "Caching",
        "Errors",
        "Limitations",
        "Benchmarks",
    ]
    wanted += ["API reference", "Design", "Debugging", "Performance guide", "Porting a kernel"]
    assert [name for name in wanted if name.lower() not in names] == []


def test_the_first_page_has_a_picture(site, page):
    page.goto((site / "index.html").as_uri())
    picture = page.locator("article img").first
    assert picture.evaluate("picture => picture.complete && picture.naturalWidth > 1000")
    top = picture.bounding_box()["y"]
    assert top < page.viewport_size["height"], "it is seen without scrolling"
    assert len(picture.get_attribute("alt")) > 40


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("writable_inputs", "language.html"),
        ("threadgroup_barrier", "errors.html"),
        ("KILN_LOG", "debugging.html"),
        ("install", "install.html"),
        ("RawKernel", "from_cuda.html"),
    ],
)
def test_search(site, page, words, expected):
    page.goto((site / "index.html").as_uri())
    if page.is_narrow:
        page.locator(".nav-overlay-icon").click()
    field = page.locator(".sidebar-search")
    field.fill(words)
    field.press("Enter")
    page.locator("#search-results ul.search li a").first.wait_for()
    page.wait_for_function("!document.querySelector('#search-results h2').textContent.includes('Searching')")
    results = page.locator("#search-results ul.search li a").evaluate_all("links => links.map((link) => link.href)")
    assert any(Path(urlparse(link).path).name == expected for link in results), results


def test_tables_can_be_filtered(site, page):
    page.goto((site / "translations.html").as_uri())
    field, count = page.locator(".kiln-filter input"), page.locator(".kiln-filter output")
    rows = page.locator("article table tbody tr")
    everything = rows.count()
    assert everything > 900 and count.inner_text() == f"{everything} of {everything} rows"

    def shown() -> list[str]:
        return rows.evaluate_all("rows => rows.filter((row) => row.offsetParent).map((row) => row.textContent)")

    field.fill("simd_shuffle rotate")
    found = shown()
    assert 1 <= len(found) <= 10 and all("simd_shuffle" in row and "rotate" in row for row in found)
    assert count.inner_text() == f"{len(found)} of {everything} rows"
    headings = page.locator("article h2").evaluate_all(
        "all => all.filter((h) => h.offsetParent).map((h) => h.textContent)"
    )
    assert [re.sub(r"\W", "", heading) for heading in headings] == ["Simdgroup"]
    # The address leads to what is shown.
    page.goto(page.url)
    assert shown() == found
    field.fill("no such construct")
    assert shown() == []
    field.fill("")
    assert len(shown()) == everything
