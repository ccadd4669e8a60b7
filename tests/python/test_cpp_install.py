"""The C++ library as programs outside this repository meet it: an install prefix, found by CMake or by pkg-config."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import documentation
import kiln
import pytest

ROOT = Path(__file__).resolve().parents[2]
# cmake and ninja of the environment come first.
ENVIRONMENT = {**os.environ, "PATH": f"{sysconfig.get_path('scripts')}:{os.environ['PATH']}"}


def run(*command: str | Path, cwd: Path, fails: bool = False) -> str:
    """What the command printed. ``fails``: whether it is to fail."""
    result = subprocess.run(
        command, cwd=cwd, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300
    )
    assert (result.returncode != 0) == fails, result.stdout
    return result.stdout


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    prefix = tmp_path_factory.mktemp("installed") / "prefix"
    build_dir = (ROOT / "build/.stamps/build-dir").read_text().strip()
    run("cmake", "--install", build_dir, "--component", "cpp", "--prefix", prefix, cwd=ROOT)
    return prefix


def configure(source: Path, prefix: Path, *options: str, fails: bool = False) -> str:
    return run(
        *("cmake", "-S", source, "-B", source / "build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}"),
        *(f"-DPython_EXECUTABLE={sys.executable}", *options),
        cwd=source,
        fails=fails,
    )


def project(folder: Path, cmake: str, program: str) -> Path:
    folder.mkdir()
    (folder / "CMakeLists.txt").write_text(
        f"cmake_minimum_required(VERSION 3.25)\nproject(outside LANGUAGES CXX)\n{cmake}\n"
    )
    (folder / "main.cpp").write_text(program)
    return folder


def build_example(name: str, prefix: Path, tmp_path: Path) -> Path:
    """The folder of an example's programs, built from a copy that knows nothing of this repository."""
    source = tmp_path / name
    shutil.copytree(ROOT / "examples/cpp" / name, source)
    configure(source, prefix, "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Wpedantic -Werror")
    run("cmake", "--build", source / "build", cwd=source)
    return source / "build"


def test_the_prefix_names_no_folder_of_the_build(prefix):
    for path in prefix.rglob("*"):
        if path.suffix in (".cmake", ".pc", ".h"):
            assert str(ROOT) not in path.read_text(), path


def shown(program: str) -> tuple[list[str], str]:
    """The arguments that the documentation gives to an example's program, and what it says that it prints."""
    (found,) = (
        (command.split()[1:], printed)
        for block in documentation.code_blocks("docs/reference/cpp.md", "console")
        for command, printed in documentation.commands(block)
        if command.partition(" ")[0] == f"build/{program}/{program}"
    )
    return found


def test_a_plain_program(prefix, tmp_path):
    build = build_example("plain", prefix, tmp_path)
    arguments, said = shown("julia")
    printed = run(build / "julia", *arguments, cwd=tmp_path)
    assert documentation.matches(said, printed), printed
    picture = (tmp_path / "julia.pgm").read_bytes()
    assert picture.startswith(b"P5\n960 640\n255\n")
    assert len(picture) == len(b"P5\n960 640\n255\n") + 960 * 640
    usage = "usage: julia PICTURE.pgm [WIDTH HEIGHT], each from 1 to 16384\n"
    for wrong in ([], ["a.pgm", "abc", "64"], ["a.pgm", "64", "64.5"], ["a.pgm", "0", "64"], ["a.pgm", "64", "99999"]):
        assert run(build / "julia", *wrong, cwd=tmp_path, fails=True) == usage
    assert not (tmp_path / "a.pgm").exists()


def test_a_program_with_mlx(prefix, tmp_path):
    build = build_example("mlx", prefix, tmp_path)
    printed = run(build / "swish", cwd=tmp_path)
    assert documentation.matches(shown("swish")[1], printed), printed
    assert float(printed.splitlines()[2].removeprefix("b is 1.5; learnt ")) == pytest.approx(1.5, abs=0.01)


def test_mlx_is_found_where_the_documentation_says(prefix, tmp_path):
    """By an activated environment, and by MLX_ROOT."""
    source = project(tmp_path / "p", "find_package(kiln REQUIRED COMPONENTS mlx)", "")
    configure = ("cmake", "-S", source, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}")
    root = run(sys.executable, "-m", "mlx", "--cmake-dir", cwd=tmp_path).strip()
    bare = tmp_path / "bare"
    run(sys.executable, "-m", "venv", "--without-pip", bare, cwd=tmp_path)
    run(
        *configure,
        "-B",
        tmp_path / "by_root",
        f"-DPython_EXECUTABLE={bare}/bin/python",
        f"-DMLX_ROOT={root}",
        cwd=source,
    )
    run("env", f"VIRTUAL_ENV={sys.prefix}", *configure, "-B", tmp_path / "activated", cwd=source)


PROGRAM = """
#include <kiln/kiln.h>

#include <cstdio>

int main() {
  kiln::Kernel kernel = kiln::metal_kernel("k", {}, {"y"}, "y[0] = 42;");
  auto outputs = kernel({.output_shapes = {{}}, .output_dtypes = {kiln::Dtype::kInt32}});
  std::printf("%d\\n", outputs[0].item<int32_t>());
}
"""


def test_a_program_with_the_libraries_of_the_python_package(tmp_path):
    """With the options that `python -m kiln cpp` prints, and by CMake. The package says which folder it is in."""
    (tmp_path / "main.cpp").write_text(PROGRAM)
    options = run(sys.executable, "-m", "kiln", "cpp", cwd=tmp_path).split()
    run("c++", "main.cpp", *options, "-o", "program", cwd=tmp_path)
    assert run(tmp_path / "program", cwd=tmp_path) == "42\n"
    source = project(
        tmp_path / "p",
        "find_package(kiln 0.1 REQUIRED)\nfind_package(kiln REQUIRED COMPONENTS kiln)\n"
        "add_executable(program main.cpp)\ntarget_link_libraries(program kiln::kiln)",
        PROGRAM,
    )
    folder = Path(run(sys.executable, "-m", "kiln", "cpp", "--cmake-dir", cwd=tmp_path).strip())
    assert folder == Path(kiln.__file__).parent / "cmake"
    configure(source, folder)
    run("cmake", "--build", source / "build", cwd=source)
    assert run(source / "build/program", cwd=tmp_path) == "42\n"
    assert str(ROOT) not in (folder / "kiln-config.cmake").read_text()


def test_the_python_package_says_what_it_lacks_for_cpp(tmp_path):
    folder = Path(kiln.__file__).parent / "cmake"
    source = project(tmp_path / "p", "find_package(kiln REQUIRED COMPONENTS mlx)", "")
    said = re.sub(r"\s+", " ", configure(source, folder, fails=True))
    assert "The Python package of Kiln has no component mlx; the installation from a clone has kiln and mlx." in said, (
        said
    )
    both = project(
        tmp_path / "q",
        "find_package(kiln REQUIRED OPTIONAL_COMPONENTS mlx)\nif(kiln_mlx_FOUND)\n  message(FATAL_ERROR mlx)\nendif()",
        "",
    )
    configure(both, folder)
    other = project(tmp_path / "r", "find_package(kiln 99.0 REQUIRED)", "")
    assert "99.0" in configure(other, folder, fails=True)


def test_the_headers_of_the_python_package_are_those_of_the_installation(prefix):
    package = Path(kiln.__file__).parent
    names = {path.name for path in (package / "include/kiln").iterdir()}
    assert names == {path.name for path in (prefix / "include/kiln").iterdir()} - {"mlx.h"}
    for name in names:
        assert (package / "include/kiln" / name).read_text() == (prefix / "include/kiln" / name).read_text()


def test_pkg_config(prefix, tmp_path):
    environment = {**ENVIRONMENT, "PKG_CONFIG_PATH": str(prefix / "lib/pkgconfig")}
    flags = subprocess.run(
        ["pkg-config", "--cflags", "--libs", "kiln"], env=environment, check=True, capture_output=True, text=True
    ).stdout.split()
    (tmp_path / "main.cpp").write_text(PROGRAM)
    compiler = os.environ.get("CXX", "c++")
    run(compiler, "-std=c++20", "main.cpp", *flags, f"-Wl,-rpath,{prefix}/lib", "-o", "program", cwd=tmp_path)
    assert run(tmp_path / "program", cwd=tmp_path) == "42\n"


@pytest.mark.parametrize("flags", ["-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror"])
def test_every_header_stands_alone_and_warns_of_nothing(prefix, tmp_path, flags):
    for header in sorted((prefix / "include/kiln").glob("*.h")):
        if header.name == "mlx.h":  # includes MLX's headers, which have warnings
            continue
        (tmp_path / "main.cpp").write_text(f"#include <kiln/{header.name}>\n#include <kiln/{header.name}>\n")
        run("c++", "-std=c++20", "-fsyntax-only", *flags.split(), f"-I{prefix}/include", "main.cpp", cwd=tmp_path)


@pytest.mark.parametrize("header", ["kiln.h", "mlx.h"])
def test_an_older_cpp_is_named(prefix, tmp_path, header):
    (tmp_path / "main.cpp").write_text(f"#include <kiln/{header}>\n")
    said = run("c++", "-std=c++17", "-fsyntax-only", f"-I{prefix}/include", "main.cpp", cwd=tmp_path, fails=True)
    first = next(line for line in said.splitlines() if "error" in line)
    assert first.endswith('#error "Kiln\'s headers are written in C++20: compile with -std=c++20"')


def test_a_wrong_component_is_named(prefix, tmp_path):
    source = project(tmp_path / "p", "find_package(kiln REQUIRED COMPONENTS cuda)", "")
    said = re.sub(r"\s+", " ", configure(source, prefix, fails=True))
    assert "kiln has no component cuda here. Its components are kiln and mlx." in said


def test_a_component_that_lacks_mlx_says_how_to_get_it(prefix, tmp_path):
    bare = tmp_path / "bare"
    run(sys.executable, "-m", "venv", "--without-pip", bare, cwd=tmp_path)
    source = project(tmp_path / "p", "find_package(kiln REQUIRED COMPONENTS mlx)", "")
    said = re.sub(r"\s+", " ", configure(source, prefix, f"-DPython_EXECUTABLE={bare}/bin/python", fails=True))
    assert (
        "kiln has no component mlx here. MLX 0.32.4 was not found where MLX_ROOT and CMAKE_PREFIX_PATH say, nor in "
        f"{bare}/bin/python. Activate the environment that has it, or give "
        '-DMLX_ROOT="$(ENVIRONMENT/bin/python -m mlx --cmake-dir)".'
    ) in said
    # Without it the rest is there.
    both = project(
        tmp_path / "q",
        "find_package(kiln REQUIRED OPTIONAL_COMPONENTS mlx)\n"
        "if(kiln_mlx_FOUND OR TARGET kiln::mlx)\n  message(FATAL_ERROR mlx)\nendif()\n"
        "add_executable(program main.cpp)\ntarget_link_libraries(program kiln::kiln)",
        PROGRAM,
    )
    configure(both, prefix, f"-DPython_EXECUTABLE={bare}/bin/python")


def test_another_version_is_refused(prefix, tmp_path):
    source = project(tmp_path / "p", "find_package(kiln 99.0 REQUIRED)", "")
    assert "99.0" in configure(source, prefix, fails=True)


def test_another_mlx_is_not_taken_for_ours(prefix, tmp_path):
    """A project may have found an MLX of its own before."""
    source = project(
        tmp_path / "p",
        "add_library(mlx INTERFACE IMPORTED)\nset(MLX_VERSION 0.31.0)\nfind_package(kiln REQUIRED COMPONENTS mlx)",
        "",
    )
    said = re.sub(r"\s+", " ", configure(source, prefix, fails=True))
    assert "kiln has no component mlx here. It is for MLX 0.32.4, and this project has found MLX 0.31.0." in said


def test_who_asks_for_kiln_alone_gets_it_alone(prefix, tmp_path):
    source = project(
        tmp_path / "p",
        "find_package(kiln 0.1 REQUIRED COMPONENTS kiln)\n"
        "if(TARGET mlx OR DEFINED Python_EXECUTABLE_FOUND OR DEFINED CACHE{MLX_DIR})\n"
        "  message(FATAL_ERROR more)\nendif()",
        "",
    )
    configure(source, prefix)


def test_two_searches_in_one_project(prefix, tmp_path):
    source = project(
        tmp_path / "p",
        "find_package(kiln REQUIRED)\nfind_package(kiln REQUIRED COMPONENTS mlx)\n"
        "add_executable(program main.cpp)\ntarget_link_libraries(program kiln::kiln kiln::mlx)",
        PROGRAM,
    )
    configure(source, prefix)
    run("cmake", "--build", source / "build", cwd=source)
    assert run(source / "build/program", cwd=tmp_path) == "42\n"


def test_a_program_that_links_through_a_link(prefix, tmp_path):
    """The compiler lies beside the library, not beside a link to it."""
    links = tmp_path / "links"
    links.mkdir()
    for library in (prefix / "lib").glob("libkiln.so*"):
        (links / library.name).symlink_to(library)
    (tmp_path / "main.cpp").write_text(PROGRAM)
    flags = (f"-I{prefix}/include", f"-L{links}", "-lkiln", f"-Wl,-rpath,{links}")
    run("c++", "-std=c++20", "main.cpp", *flags, "-o", "program", cwd=tmp_path)
    assert run(tmp_path / "program", cwd=tmp_path) == "42\n"


# The C++ programs of the documentation.
PROGRAMS = [
    (page, number)
    for page in ("README.md", "docs/reference/cpp.md")
    for number, block in enumerate(documentation.code_blocks(page))
    if block.language == "cpp" and "int main" in block.text
]


@pytest.fixture(scope="module")
def programs(prefix, tmp_path_factory):
    """Built by one project, since CMake's search for a compiler takes as long as one of them."""
    folder = tmp_path_factory.mktemp("programs") / "p"
    lines = ["find_package(kiln REQUIRED COMPONENTS kiln mlx)"]
    source = project(folder, "", "")
    for n, (page, number) in enumerate(PROGRAMS):
        text = documentation.code_blocks(page)[number].text
        (source / f"{n}.cpp").write_text(text)
        component = "mlx" if "kiln/mlx.h" in text else "kiln"
        lines.append(f"add_executable(program{n} {n}.cpp)\ntarget_link_libraries(program{n} kiln::{component})")
    with open(source / "CMakeLists.txt", "a") as file:
        file.write("\n".join(lines) + "\n")
    configure(source, prefix)
    run("cmake", "--build", source / "build", "--parallel", "1", cwd=source)
    return source / "build"


@pytest.mark.parametrize("n", range(len(PROGRAMS)), ids=lambda n: f"{PROGRAMS[n][0]}-{PROGRAMS[n][1]}")
def test_the_programs_of_the_documentation(programs, tmp_path, n):
    page, number = PROGRAMS[n]
    following = documentation.code_blocks(page)[number + 1 :][:1]
    printed = run(programs / f"program{n}", cwd=tmp_path)
    if following and following[0].language == "text":
        assert printed.rstrip() == following[0].text.rstrip()


def test_a_missing_compiler_is_said_where_it_is_needed(prefix, tmp_path):
    """The library alone is enough for everything but compiling."""
    copy = tmp_path / "copy"
    shutil.copytree(prefix, copy)
    (copy / "lib/libkiln_compiler.so").unlink()
    source = project(
        tmp_path / "p",
        "find_package(kiln REQUIRED)\nadd_executable(program main.cpp)\ntarget_link_libraries(program kiln::kiln)",
        """
#include <kiln/kiln.h>
#include <iostream>
int main() {
  kiln::Kernel kernel = kiln::metal_kernel("k", {}, {"y"}, "y[0] = 42;");
  kiln::KernelCall call{.output_shapes = {{}}, .output_dtypes = {kiln::Dtype::kInt32}};
  std::cout << kernel.source_for(call).size() << "\\n";
  try {
    kernel(call);
  } catch (const kiln::UnsupportedError& error) {
    std::cout << error.what() << "\\n";
  }
}
""",
    )
    configure(source, copy)
    run("cmake", "--build", source / "build", cwd=source)
    said = run(source / "build/program", cwd=tmp_path)
    library = copy / "lib/libkiln_compiler.so"
    assert said.endswith(
        f"Kiln's compiler is missing: {library}: cannot open shared object file: No such file or directory. "
        f"Expected {library}; installing Kiln again brings it, and KILN_COMPILER names another file.\n"
    ), said
