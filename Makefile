# Two commands for a newcomer; everything else is in ./dev.
ARGS ?=
STATE ?= .demo

.PHONY: demo test check clean

demo:            ## a sample database, served, with a short conversation (ARGS=--once to end there)
	@./dev environment run
	@exec .venv/bin/tidegate demo --state $(STATE) $(ARGS)

test:            ## every test
	@./dev test $(ARGS)

check:           ## style, types, layers and documents
	@./dev check

clean:           ## forget the environment and the demo
	rm -rf .venv .demo .cache
