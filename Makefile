# Few verbs; each is one or two commands that can also be typed. See CONTRIBUTING.md.

.PHONY: build test race lint bench bench-llama golden docs fuzz

build: ## bin/gotrain and bin/hcclrun
	go build -o bin/ ./cmd/gotrain ./cmd/hcclrun

test: ## what a change must pass
	go vet ./...
	go test ./...

race:
	go test -race ./ddp/... ./train/dirlock ./train/telemetry/... ./train/data ./cmd/hcclrun

lint:
	@test -z "$$(gofmt -l .)" || { gofmt -l .; exit 1; }
	go vet ./...
	staticcheck ./...

bench: ## gotrain next to its peers on this machine; bench/README.md says what is needed
	go run ./bench/compare

bench-llama: ## the same for Llamas: training steps, and writing text against the speed of memory; takes hours
	go run ./bench/compare -what llama,generate -shape stories15M,d512

golden: ## rewrite golden files; look at the difference before committing it
	go test ./recipes ./cmd/gotrain ./internal/notices -update

docs: ## what is generated from code
	go generate ./recipes

fuzz: ## every fuzz target for 10 minutes, one after the other
	bash scripts/fuzz.sh
