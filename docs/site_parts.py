"""What the site has beside pages that stand in this folder: the text of headers, pages of the gallery, links to files of the
repository."""

from __future__ import annotations

import ast
import importlib
import posixpath
import re
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from pygments.lexers.c_cpp import CppLexer
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
logger = logging.getLogger(__name__)


class Filter(SphinxDirective):
    """``{filter}``: where the field stands that filters the page's tables (``_static/tables.js``)."""

    def run(self) -> list[nodes.Node]:
        return [nodes.raw("", '<div class="kiln-filter"></div>', format="html")]


# ---- The gallery

_NO_PROGRAMS = {"__init__.py", "__main__.py", "common.py"}

# The first line of a page that is written here, by which others tell it from pages of this repository.
MADE = "% Written by site_parts.py from the program; not kept in the repository.\n"


def programs() -> list[Path]:
    return sorted(path for path in (ROOT / "examples" / "gallery").glob("*.py") if path.name not in _NO_PROGRAMS)


def pictures_of(program: Path, pictures: Path) -> list[Path]:
    """Those that the program has made; else the one that the repository keeps, of a program that needs a library which
    the environment of the documentation does not have."""
    made = sorted(path for path in pictures.glob(f"{program.stem}*.*") if path.suffix in (".png", ".gif"))
    kept = DOCS / "pictures" / f"{program.stem}.jpg"
    return made or [kept] * kept.exists()


class Thumbnails(SphinxDirective):
    """``{thumbnails}``: the first picture of each of the gallery's programs, which leads to the program's page. Nothing
    where no pictures were made."""

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(__file__)
        row = nodes.paragraph()
        for program in programs():
            for picture in pictures_of(program, Path(self.config.gallery_pictures))[:1]:
                # As a path from the folder of the documentation.
                image = nodes.image(uri=f"/../{picture.relative_to(ROOT)}", alt=program.stem, height="150px")
                # Sphinx's own links to pages have text alone. The pages stand in one folder.
                row += [nodes.reference("", "", image, refuri=f"{program.stem}.html"), nodes.Text(" ")]
        return [row] if row.children else []


def gallery_page(program: Path, pictures: Path) -> str:
    """The page of one program: its docstring, its pictures, its text."""
    module = ast.parse(program.read_text())
    docstring = ast.get_docstring(module)
    if not docstring:
        raise ValueError(f"{program} has no docstring")
    first = (module.body[0].end_lineno or 0) + 2  # of the code: the page has the docstring already
    title, _, rest = docstring.partition("\n\n")
    found = pictures_of(program, pictures)
    if pictures.is_dir() and not found:
        logger.warning("the gallery's program %s has made no picture in %s", program.stem, pictures)
    shown = "\n\n".join(f"![{picture.stem.replace('_', ' ')}](/{picture.relative_to(ROOT)})" for picture in found)
    title = " ".join(title.split()).removesuffix(".")
    return f"""{MADE}
# {title}

{shown.replace("(/", "(../../")}

{rest}

From a clone, `.venv/bin/python -m examples.gallery.{program.stem}` draws it into `out/gallery`; `--help` has its
options.

:::{{literalinclude}} ../../examples/gallery/{program.name}
:language: python
:lines: {first}-
:::
"""


def write_gallery(app: Sphinx) -> None:
    """Writes the pages of the gallery where they have changed, and takes away those whose program is gone."""
    folder = DOCS / "gallery"
    pages = {program.stem: gallery_page(program, Path(app.config.gallery_pictures)) for program in programs()}
    for page in folder.glob("*.md"):
        if page.read_text().startswith(MADE) and page.stem not in pages:
            page.unlink()
    for name, text in pages.items():
        page = folder / f"{name}.md"
        if not page.exists() or page.read_text() != text:
            page.write_text(text)


# ---- Links

_PAGES = {
    "README.md": "index",
    "ARCHITECTURE.md": "architecture",
    "CONTRIBUTING.md": "contributing",
    "CHANGELOG.md": "changelog",
    "examples/gallery/README.md": "gallery/index",
}


class RepositoryLinks(SphinxPostTransform):
    """Links that are right where one reads the repository: to files outside of this folder, and to programs, which have
    pages here. What has no page is shown by its name."""

    default_priority = 5  # before MyST resolves links

    def run(self, **keywords: Any) -> None:
        for node in list(self.document.findall(addnodes.pending_xref)):
            if node.get("reftype") != "myst":
                continue
            target = node["reftarget"]
            page = posixpath.join(posixpath.dirname(node["refdoc"]), target.removesuffix(".py"))
            if target.endswith(".py") and page in self.env.found_docs:
                node["refdomain"], node["reftarget"], node["reftargetid"] = "doc", page, None
                continue
            path = (DOCS / target).resolve()
            path = next((p for p in (path, path.with_name(path.name + ".md")) if p.exists()), path)
            if path.is_relative_to(DOCS) or not path.is_relative_to(ROOT) or not path.exists():
                continue
            page = _PAGES.get(str(path.relative_to(ROOT)))
            if page is None:
                node.replace_self(nodes.literal(text=str(path.relative_to(ROOT))))
            else:
                node["refdomain"], node["reftarget"], node["reftargetid"] = "doc", page, None


class PythonNames(SphinxTransform):
    """Makes the names of the package known to the search and the index: headings such as `kiln.Kernel.compile`, and the
    items of their lists that are attributes of such a class. tools/write_lists.py writes both."""

    default_priority = 400

    def apply(self, **keywords: Any) -> None:
        if self.env.docname != "reference/python":
            return
        for section in self.document.findall(nodes.section):
            title = section.next_node(nodes.title)
            if title is None or not re.fullmatch(r"kiln(\.\w+)+", title.astext()):
                continue
            name = title.astext()
            thing = _public(name)
            self._note(name, thing, section)
            for item in section.findall(nodes.list_item):
                literal = item.next_node(nodes.literal)
                member = literal.astext() if literal else ""
                if isinstance(thing, type) and member in {*vars(thing), *getattr(thing, "__annotations__", {})}:
                    self._note(f"{name}.{member}", None, section)
        for module, anchor in (("kiln.errors", "errors"), ("kiln.mlx", "mlx")):
            self.env.domains.python_domain.note_module(module, anchor, "", "", False)

    def _note(self, name: str, thing: Any, section: nodes.section) -> None:
        domain = self.env.domains.python_domain
        if name in domain.objects:
            return
        kind = "class" if isinstance(thing, type) else "attribute" if thing is None else "function"
        domain.note_object(name, kind, section["ids"][0])
        entry = ("single", name, section["ids"][0], "", None)
        section.insert(1, addnodes.index(entries=[entry]))


def _public(name: str) -> Any:
    first, _, rest = name.partition(".")
    thing: Any = importlib.import_module("kiln.mlx" if rest.startswith("mlx") else first)
    for part in rest.removeprefix("mlx.").split("."):
        thing = getattr(thing, part)
    return thing


class MetalLexer(CppLexer):
    """Metal is C++ as far as colours go."""

    name = "Metal"
    aliases: ClassVar[list[str]] = ["metal"]


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_config_value("gallery_pictures", str(ROOT / "build" / "gallery"), "env")
    app.add_directive("filter", Filter)
    app.add_directive("thumbnails", Thumbnails)
    app.add_lexer("metal", MetalLexer)
    app.add_transform(PythonNames)
    app.add_post_transform(RepositoryLinks)
    app.connect("builder-inited", write_gallery)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
