# Two commands for a newcomer; everything else is in ./dev.
ARGS ?=
ALL ?=
STATE ?= .demo

.PHONY: demo test check clean

demo:            ## a sample database, served, with a short conversation (ARGS=--once to end there)
	@./dev environment run
	@exec .venv/bin/tidegate demo --state $(STATE) $(ARGS)

test:            ## the quick tier of the tests (ALL=1: every test, as CI does)
	@./dev test $(if $(ALL),--all) $(ARGS)

check:           ## style, types, layers and documents
	@./dev check

clean:           ## forget the environment and the demo
	rm -rf .venv .demo .cache
