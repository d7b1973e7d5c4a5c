# Everything one does with hetnn. `make demo` and `make test` set up all they need on a bare Debian or Ubuntu machine.
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
STAMPS := build/stamps
BUILD := build/release
JOBS ?= $(shell nproc)
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_ROOT_USER_ACTION := ignore

CPP_SOURCES := $(shell find cpp bindings cmake -type f \( -name '*.cpp' -o -name '*.h' -o -name '*.inc' -o -name '*.gradient' -o -name '*.cmake' -o -name CMakeLists.txt \))
PACKAGE_SOURCES := $(CPP_SOURCES) CMakeLists.txt pyproject.toml README.md tools/package_page.py $(shell find python -name '*.py' -o -name '*.pyi' -o -name '*.json' -o -name py.typed -o -path '*/page/*')
CPP_FORMATTED := $(shell find cpp bindings tests/cpp tests/fuzz benchmarks -name '*.cpp' -o -name '*.h' 2>/dev/null)
CLANG_FORMAT := $(shell command -v clang-format-14 || command -v clang-format)
CLANG_TIDY := $(shell command -v clang-tidy-14 || command -v clang-tidy)

ALSO := setup build cpp-test python-test test-long test-cuda lint tidy asan ubsan asan-sample openmp-sample tsan fuzz fuzz-long fuzz-plan fuzz-serve fuzz-devices fuzz-devices-asan \
        fuzz-networks fuzz-onnx fuzz-tflite fuzz-tflite-layers fuzz-tflite-networks fuzz-tosa fuzz-models fuzz-schedules bench bench-cpu bench-peers bench-plan bench-compile bench-operators bench-quantized bench-labels bench-not-finite bench-devices bench-training bench-torch-compile bench-weights bench-npu bench-runtime bench-threads bench-busy bench-serve fault test-engines conformance sweep-ranges sweep-files \
        sweep-architectures prove-rules docs site stubs wheel wheels notebooks pictures stories new-op new-pass clean
.PHONY: help demo test tiny $(ALSO)

help:
	@echo "make demo       detect faces on a photo, three networks compiled for cpu+relu-only"
	@echo "make test       lint, C++ tests, Python tests"
	@echo "make tiny       the quick part of the tests, under a minute"
	@echo "also: $(ALSO)"

# Set-up, in steps that are done once each.
$(STAMPS)/system: tools/install_system_packages.sh
	@mkdir -p $(STAMPS)
	sh tools/install_system_packages.sh
	@touch $@

$(STAMPS)/venv: $(STAMPS)/system
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 10) else "Python 3.10 or newer is needed")'
	test -x $(PY) || $(PYTHON) -m venv $(VENV)
	$(PY) -m pip install -q --upgrade pip
	@touch $@

# torch comes first and alone: what needs it would otherwise pull in a build with GPU libraries.
$(STAMPS)/torch: $(STAMPS)/venv
	$(PY) -m pip install -q torch==2.13.0
	@touch $@

LISTS := $(addprefix tests/python/requirements,.txt -no-deps.txt -apart.txt)
$(STAMPS)/requirements: $(STAMPS)/torch $(LISTS)
	$(PY) -m pip install -q -r tests/python/requirements.txt
	$(PY) -m pip install -q --no-deps -r tests/python/requirements-no-deps.txt
	$(PYTHON) -m venv build/apart
	build/apart/bin/pip install -q --no-deps -r tests/python/requirements-apart.txt
	@touch $@

# One build folder serves the installed package and the C++ tests.
$(STAMPS)/install: $(STAMPS)/requirements $(PACKAGE_SOURCES)
	rm -rf build/wheelhouse
	$(PY) -m pip wheel -q --no-deps --no-build-isolation -w build/wheelhouse -Cbuild-dir=$(BUILD) \
	  -Ccmake.define.HETNN_BUILD_TESTS=ON .
	$(PY) -m pip install -q --no-deps --force-reinstall build/wheelhouse/hetnn-*.whl
	@touch $@

setup: $(STAMPS)/requirements
build: $(STAMPS)/install

demo: $(STAMPS)/install
	cd examples && ../$(PY) -m mtcnn.demo --output ../out

# Tests.
test: lint cpp-test wheel python-test

cpp-test: $(STAMPS)/install
	cmake --build $(BUILD) -j $(JOBS)
	ctest --test-dir $(BUILD) --output-on-failure -j $(JOBS)

python-test: $(STAMPS)/install
	OMP_NUM_THREADS=1 $(PY) -m pytest -q -n $(JOBS) --dist worksteal --durations=10

tiny: $(STAMPS)/install
	$(PY) -m pytest -q -m "not slow" tests/python/tiny tests/python/house tests/python/errors

# What takes minutes a test: large models on simulators, every network of the CPU's bench on OpenVINO.
test-long: $(STAMPS)/install
	OMP_NUM_THREADS=1 $(PY) -m pytest -q -n $(JOBS) -m long

# On a machine with an NVIDIA GPU: what `onnxruntime-gpu` takes of every operator and of the bench's networks.
test-cuda: $(STAMPS)/install
	$(PY) -m pip install -q --no-deps onnxruntime-gpu
	OMP_NUM_THREADS=1 $(PY) -m pytest -q -rP -m cuda tests/python/backends

# How many files it takes to add an operator, a device, a pass, a rule; on a copy of the tree under build/stories.
stories: $(STAMPS)/requirements
	$(PY) tools/stories.py

# What the page looks like, for docs: pictures that its tests take.
pictures: $(STAMPS)/install
	HETNN_PICTURES=docs/pictures $(PY) -m pytest -q -m "" tests/python/page/test_pictures.py

notebooks: $(STAMPS)/install
	$(PY) -m pytest -q tests/python/notebooks

lint: $(STAMPS)/install
	ruff check .
	ruff format --check -q .
	mypy
	$(PY) tools/check_house.py
	$(if $(CLANG_FORMAT),$(CLANG_FORMAT) --dry-run -Werror $(CPP_FORMATTED))
	$(PY) tools/run_clang_tidy.py --build $(BUILD) --changed $(if $(CLANG_TIDY),--program $(CLANG_TIDY))

tidy: $(STAMPS)/install
	$(PY) tools/run_clang_tidy.py --build $(BUILD) $(if $(CLANG_TIDY),--program $(CLANG_TIDY))

# Addresses and undefined behaviour are watched in one build, that of the fuzzers; it tries their corpus too.
asan ubsan: $(STAMPS)/requirements $(STAMPS)/fuzz-compiler
	cmake --preset fuzz
	cmake --build --preset fuzz -j $(JOBS)
	ctest --test-dir build/fuzz --output-on-failure
# The floors that read files and run what they say; those beside them are the objects of the release.
SANITIZED := base memory npu program sim runtime capi
SANITIZED_FUZZERS := fuzz_buffers fuzz_container fuzz_npu_words fuzz_topology
asan-sample: $(STAMPS)/requirements
	cmake --preset asan
	cmake --build --preset asan -j $(JOBS) --target $(SANITIZED:=_test) $(SANITIZED_FUZZERS)
	ctest --test-dir build/asan --output-on-failure -j $(JOBS) -R '^($(subst $() ,|,$(SANITIZED) $(SANITIZED_FUZZERS)))$$'
# The other way to run parallel regions: the floors that begin them, on teams of OpenMP.
THREADED := base kernels runtime
openmp-sample: $(STAMPS)/requirements
	cmake --preset openmp
	cmake --build --preset openmp -j $(JOBS) --target $(THREADED:=_test)
	ctest --test-dir build/openmp --output-on-failure -j $(JOBS) -R '^($(subst $() ,|,$(THREADED)))$$'
tsan: $(STAMPS)/requirements
	cmake --preset tsan
	cmake --build --preset tsan -j $(JOBS)
	ctest --test-dir build/tsan --output-on-failure

# Random inputs: FUZZ_GRAPHS planning problems; FUZZ_SECONDS of damaged files and texts.
FUZZ_GRAPHS ?= 1000000
FUZZ_SECONDS ?= 60
FUZZ_CALLS ?= 20000
FUZZ_REQUESTS ?= 2000000
fuzz-plan: $(STAMPS)/install
	cmake --build $(BUILD) -j $(JOBS) --target plan_test
	HETNN_FUZZ_GRAPHS=$(FUZZ_GRAPHS) $(BUILD)/tests/cpp/plan_test --gtest_filter='PlanFuzz.*'
# Rewriting rules over the reals; writes docs/rule_proofs.json, from which `make docs` says how each is proved.
prove-rules: $(STAMPS)/install
	$(PY) tools/prove_rules.py
# Ranges of elementwise functions against what they and their kernels give, RANGE_POINTS of each.
RANGE_POINTS ?= 10000000
sweep-ranges: $(STAMPS)/install
	cmake --build $(BUILD) -j $(JOBS) --target conformance_test
	HETNN_RANGE_POINTS=$(RANGE_POINTS) $(BUILD)/tests/cpp/conformance_test --gtest_filter='Range.*'
# ONNX models altered in their bytes and inside, FUZZ_MODELS of them; then extreme numbers in every place of each.
FUZZ_MODELS ?= 100000
fuzz-onnx: $(STAMPS)/install
	OMP_NUM_THREADS=1 $(PY) tests/python/fuzz/fuzz_onnx.py --models $(FUZZ_MODELS)
	OMP_NUM_THREADS=1 $(PY) tests/python/fuzz/sweep_onnx.py
# TFLite files likewise, N of them.
N ?= 100000
fuzz-tflite: $(STAMPS)/install
	OMP_NUM_THREADS=1 $(PY) tests/python/fuzz/fuzz_tflite.py --models $(N)
# Random TFLite layers of integers beside LiteRT's reference kernels, LAYERS of each kind and type.
LAYERS ?= 2000
fuzz-tflite-layers: $(STAMPS)/install
	OMP_NUM_THREADS=1 $(PY) tests/python/fuzz/fuzz_tflite_layers.py --layers $(LAYERS)
# The same layers beside TOSA's reference model, then with every rescaling rounded once.
fuzz-tosa: $(STAMPS)/install
	OMP_NUM_THREADS=1 $(PY) tests/python/fuzz/fuzz_tosa.py --layers $(LAYERS)
	OMP_NUM_THREADS=1 $(PY) tests/python/fuzz/fuzz_tosa.py --layers $(LAYERS) --single
# Random networks of them on an NPU, NETWORKS in number.
NETWORKS ?= 2000
fuzz-tflite-networks: $(STAMPS)/install
	OMP_NUM_THREADS=1 $(PY) tests/python/fuzz/fuzz_tflite_networks.py --models $(NETWORKS)
# Models made from the operator table, on every device, by their meaning, by ONNX Runtime and by torch.
fuzz-models: $(STAMPS)/install
	OMP_NUM_THREADS=1 $(PY) tests/python/fuzz/fuzz_models.py --models $(FUZZ_MODELS)
# Random networks of torch beside eager torch, and quantized ones beside ONNX Runtime, on several targets, for
# NETWORKS_SECONDS in all; `FAMILIES=moving,states` for some.
NETWORKS_SECONDS ?= 3600
fuzz-networks: $(STAMPS)/install
	OMP_NUM_THREADS=1 $(PY) tests/python/fuzz/fuzz_networks.py --seconds $(NETWORKS_SECONDS) --seed $$(date +%s) $(if $(FAMILIES),--families $(FAMILIES))
# Schedules of an NPU altered in their figures, names, lines and groups, SCHEDULES of them.
MESSAGES ?= 1000000
SCHEDULES ?= 20000
fuzz-schedules: $(STAMPS)/install
	OMP_NUM_THREADS=1 $(PY) tests/python/fuzz/fuzz_schedules.py --models $(SCHEDULES)
fuzz-devices: $(STAMPS)/install
	OMP_NUM_THREADS=1 $(PY) tests/python/fuzz/fuzz_devices.py --messages $(MESSAGES)
# The same on the runtime under sanitizers, beside the compiler as it is; 2,000 messages take seconds.
WATCHED := build/asan-python
fuzz-devices-asan: $(STAMPS)/install
	cmake --preset asan -B $(WATCHED) -DHETNN_BUILD_PYTHON=ON -DHETNN_BUILD_TESTS=OFF -DSKBUILD=ON
	cmake --build $(WATCHED) -j $(JOBS) --target _runtime
	rm -rf $(WATCHED)/site
	mkdir $(WATCHED)/site
	cp -r $$(cd / && $(CURDIR)/$(PY) -c 'import hetnn; print(*hetnn.__path__)') $(WATCHED)/site/hetnn
	cp $(WATCHED)/bindings/_runtime.*.so $(WATCHED)/site/hetnn/
	cp -L $(WATCHED)/lib/libhetnn_runtime.so.1 $(WATCHED)/site/hetnn/lib/
	LD_PRELOAD="$$(g++ -print-file-name=libasan.so) $$(g++ -print-file-name=libstdc++.so.6)" ASAN_OPTIONS=detect_leaks=0 \
	  PYTHONPATH=$(WATCHED)/site OMP_NUM_THREADS=1 $(PY) tests/python/fuzz/fuzz_devices.py --messages $(MESSAGES)
fuzz-serve: $(STAMPS)/install
	$(PY) tests/python/fuzz/fuzz_serve.py --requests $(FUZZ_REQUESTS)
fuzz: $(STAMPS)/install
	$(PY) tests/python/fuzz/fuzz_inputs.py --seconds $(FUZZ_SECONDS)
	$(PY) tests/python/fuzz/fuzz_calls.py --calls $(FUZZ_CALLS)
	$(PY) tests/python/fuzz/fuzz_executables.py --seconds $(FUZZ_SECONDS) --seed $$(date +%s)
	$(MAKE) $(FUZZERS)

# Coverage-guided, by libFuzzer of clang 14: one for FUZZ_SECONDS each, or all at once until stopped. What they find lies
# in build/fuzz/findings; a file that is moved to tests/fuzz/findings is tried by `make cpp-test` from then on.
FUZZERS := $(patsubst tests/fuzz/fuzz_%.cpp,fuzz-of-%,$(wildcard tests/fuzz/fuzz_*.cpp))
$(STAMPS)/fuzz-compiler: tools/install_system_packages.sh $(STAMPS)/system
	sh tools/install_system_packages.sh clang-14 libclang-rt-14-dev
	@touch $@
$(FUZZERS): fuzz-of-%: $(STAMPS)/fuzz-compiler
	cmake --preset fuzz
	cmake --build --preset fuzz -j $(JOBS) --target fuzz_$*
	mkdir -p build/fuzz/corpus/$* build/fuzz/findings
	build/fuzz/tests/fuzz/fuzz_$* -max_total_time=$(FUZZ_SECONDS) -timeout=12 -rss_limit_mb=3072 -print_final_stats=1 \
	  -artifact_prefix=build/fuzz/findings/$*- $(addprefix -dict=,$(wildcard tests/fuzz/$*.dict)) $(FUZZ_FLAGS) \
	  build/fuzz/corpus/$* tests/fuzz/corpus/$* $(wildcard tests/fuzz/findings/$*)
# Each fault of servers, stores and devices elsewhere a hundred times: killed workers and writers, clients that leave,
# damage, full disks; device servers killed, paused, cut off, slow and garbled.
fault: $(STAMPS)/install
	HETNN_FAULT_ROUNDS=100 $(PY) -m pytest -q -m fault tests/python/serve tests/python/store tests/python/remote
# Ray, Dask and Spark; KServe; MLServer; Ray Serve: each of the four in an environment of its own.
test-engines: $(STAMPS)/install
	for name in batches kserve mlserver mlflow rayserve; do \
	  $(PYTHON) -m venv build/engines/$$name && build/engines/$$name/bin/pip install -q -r tests/engines/$$name.txt && \
	  build/engines/$$name/bin/pip install -q --force-reinstall --no-deps build/wheelhouse/hetnn-*.whl && \
	  build/engines/$$name/bin/python -m pytest -q tests/engines/test_$$name.py || exit 1; \
	done
fuzz-long:
	$(MAKE) -j $(words $(FUZZERS)) $(FUZZERS) FUZZ_SECONDS=0 FUZZ_FLAGS="-fork=1 -ignore_crashes=1 -ignore_ooms=1 -ignore_timeouts=1"

bench: $(STAMPS)/install
	$(PY) benchmarks/partition.py
	$(PY) benchmarks/rewriting.py
	$(PY) benchmarks/fusion.py
	$(PY) benchmarks/nary.py
	$(PY) benchmarks/nary.py --fan-ins
bench-plan: $(STAMPS)/install
	$(PY) benchmarks/partition.py
# Networks on the CPU beside every peer; the peers' environments, and the networks' files, are made once.
$(STAMPS)/cpu-peers: $(STAMPS)/peers benchmarks/cpu/peers.txt
	$(PYTHON) -m venv build/cpu-peers
	build/cpu-peers/bin/pip install -q torch==2.13.0
	build/cpu-peers/bin/pip install -q -r benchmarks/cpu/peers.txt
	build/cpu-peers/bin/pip install -q --no-deps torchvision==0.29.2 MNN==3.6.1
	build/peers/bin/pip install -q numpy
	@touch $@
$(STAMPS)/cpu-networks: $(STAMPS)/cpu-peers benchmarks/cpu/networks.py
	PATH=$(CURDIR)/build/cpu-peers/bin:$$PATH build/cpu-peers/bin/python benchmarks/cpu/bench.py prepare build/cpu-bench
	build/peers/bin/python benchmarks/cpu/bench.py lower build/cpu-bench
	@touch $@
bench-peers: $(STAMPS)/cpu-networks
bench-cpu: $(STAMPS)/install $(STAMPS)/cpu-networks
	build/cpu-peers/bin/pip install -q --force-reinstall --no-deps build/wheelhouse/hetnn-*.whl
	BENCH_PYTHON_XNNPACK=build/peers/bin/python build/cpu-peers/bin/python benchmarks/cpu/bench.py run build/cpu-bench \
	  --history build/cpu-bench/history.jsonl --json build/cpu-bench/last.json
# A tiny network's runs a second through the C interface and from Python, the library's size and start, beside those of
# ExecuTorch and LiteRT, which have an environment of their own.
$(STAMPS)/peers: $(STAMPS)/system
	$(PYTHON) -m venv build/peers
	build/peers/bin/pip install -q torch==2.13.0
	build/peers/bin/pip install -q executorch==1.5.1 ai-edge-litert==2.3.0
	@touch $@
bench-runtime: $(STAMPS)/install $(STAMPS)/peers
	cmake -S . -B $(BUILD) -DHETNN_BUILD_BENCHMARKS=ON
	cmake --build $(BUILD) -j $(JOBS) --target bench_capi_runs hetnn_shared
	$(PY) benchmarks/runtime.py $(BUILD) build/peers/bin/python
# Regions on hetnn's own threads beside teams of OpenMP.
bench-threads: $(STAMPS)/install
	rm -rf build/openmp-site
	$(PY) -m pip wheel -q --no-deps --no-build-isolation -w build/openmp-site -Cbuild-dir=build/openmp-python \
	  -Ccmake.define.HETNN_THREADS=openmp .
	$(PY) -m pip install -q --no-deps --target build/openmp-site build/openmp-site/hetnn-*.whl
	$(PY) benchmarks/threads.py build/openmp-site
# What two threads lose beside one busy process, beside XNNPACK's loss.
bench-busy: $(STAMPS)/install $(STAMPS)/peers
	$(PY) benchmarks/beside_busy.py build/peers/bin/python
# Seconds and memory of hetnn.compile, a row a network and target.
bench-compile: $(STAMPS)/install $(STAMPS)/int8-peers
	PYTHONPATH=build/int8-peers $(PY) benchmarks/compile.py
# Single operators beside eager torch, on one thread and on two.
bench-operators: $(STAMPS)/install
	OMP_NUM_THREADS=1 $(PY) benchmarks/operators.py --threads 1
	OMP_NUM_THREADS=2 $(PY) benchmarks/operators.py --threads 2
# How near to their bound quantized networks run on an NPU.
bench-npu: $(STAMPS)/install
	$(PY) benchmarks/npu.py
# Quantized networks beside ONNX Runtime and OpenVINO; their export needs onnxscript.
$(STAMPS)/int8-peers: $(STAMPS)/requirements
	$(PY) -m pip install -q --no-deps --target build/int8-peers openvino==2026.4.1 onnxscript==0.7.2 onnx-ir==1.1.0
	@touch $@
bench-quantized: $(STAMPS)/install $(STAMPS)/int8-peers
	PYTHONPATH=build/int8-peers $(PY) benchmarks/quantized.py
# Convolutions of infinities and of what is no number beside finite ones.
bench-not-finite: $(STAMPS)/install
	$(PY) benchmarks/not_finite.py
# Labels of networks that onnxruntime quantized, in hetnn, on the simulated NPU and in ONNX Runtime.
bench-labels: $(STAMPS)/install $(STAMPS)/int8-peers
	PYTHONPATH=build/int8-peers $(PY) benchmarks/labels.py
# Steps of training beside eager torch and torch.compile.
bench-training: $(STAMPS)/install
	$(PY) benchmarks/training.py
# torch.compile with hetnn beside hetnn.compile and inductor.
bench-torch-compile: $(STAMPS)/install
	$(PY) benchmarks/torch_compile.py
# A device in another process beside the same here; other people's compilers as devices beside those tools alone.
bench-devices: $(STAMPS)/install
	$(PY) benchmarks/devices/remote.py
	$(PY) benchmarks/devices/networks.py
	$(PY) benchmarks/devices/ethos.py --check
	$(PY) benchmarks/devices/ethos.py --between
# Linear layers whose weights stay in blocks of a few bits, or in 16 bits, beside ONNX Runtime and torch.
bench-weights: $(STAMPS)/install
	$(PY) benchmarks/blocks.py
	$(PY) benchmarks/narrow.py
bench-serve: $(STAMPS)/install
	cmake -S . -B $(BUILD) -DHETNN_BUILD_BENCHMARKS=ON
	cmake --build $(BUILD) -j $(JOBS) --target http_load
	test -x build/triton/bin/python || $(PYTHON) -m venv build/triton
	build/triton/bin/python -m pip install -q -r benchmarks/triton.txt || echo "Triton is not to be had here" >&2
	$(PY) benchmarks/serve.py --triton build/triton/bin/python
	$(PY) benchmarks/serve_limits.py

# Distribution.
wheel: $(STAMPS)/wheel
$(STAMPS)/wheel: $(STAMPS)/install
	rm -rf dist
	$(PY) tools/finish_wheel.py build/wheelhouse/hetnn-*.whl dist --built $(BUILD)
	@touch $@
# What is published: a wheel for each Python that is here or that uv fetches, for glibc 2.28 and newer.
wheels: $(STAMPS)/requirements
	$(PY) -m pip install -q ziglang==0.17.1 uv==0.13.9
	$(PY) tools/build_wheels.py

# Generated files.
stubs: $(STAMPS)/install
	$(PY) tools/generate_stubs.py
# ONNX's backend tests and PyTorch's operator samples, then every overload of core ATen alone on every element type: how
# many pass, and what fails and why; and its gradients. And every operator on every element type and device.
conformance: $(STAMPS)/install
	-OMP_NUM_THREADS=1 $(PY) tools/conformance.py
	$(PY) tools/core_aten.py
	$(PY) tools/core_gradients.py
	$(PY) tools/operator_types.py
# Model files that packages ship, beside ONNX Runtime or LiteRT; what is downloaded stays in build/model_files.
sweep-files: $(STAMPS)/install
	OMP_NUM_THREADS=1 $(PY) tools/sweep_files.py
# Networks of timm and transformers, small and with random weights, beside eager torch; two hours on one core. SWEEP has
# options: `make sweep-architectures SWEEP="--sample 100 --seed 3"`.
sweep-architectures: $(STAMPS)/install
	OMP_NUM_THREADS=1 $(PY) tools/sweep_architectures.py $(SWEEP)
docs: $(STAMPS)/install
	$(PY) tools/generate_docs.py
# The guide as a site, in build/site: warnings are errors, and it reads without a network.
site: $(STAMPS)/requirements
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build

new-op:
	@test -n "$(NAME)" || { echo "usage: make new-op NAME=my_op"; exit 2; }
	$(PYTHON) tools/new_file.py op $(NAME)
new-pass:
	@test -n "$(NAME)" || { echo "usage: make new-pass NAME=verb_phrase"; exit 2; }
	$(PYTHON) tools/new_file.py pass $(NAME)

clean:
	rm -rf build dist out
