# Shortcuts; each target is one or two commands that you can also type. See CONTRIBUTING.md.

.PHONY: build test race lint arm64 ascend bench bench-llama bench-net golden docs fuzz deploy release

build: ## bin/gotrain and bin/hcclrun
	go build -o bin/ ./cmd/gotrain ./cmd/hcclrun

test: ## vet and all tests; .ci/run has everything that a change must pass
	go vet ./...
	go test ./...

race:
	go test -race ./ddp/... ./train/dirlock ./train/telemetry/... ./train/data ./cmd/hcclrun

lint:
	@test -z "$$(gofmt -l .)" || { gofmt -l .; exit 1; }
	go vet ./...
	staticcheck ./...

arm64: ## build for linux/arm64 with cgo, and run its tests in an emulator
	sh scripts/arm64.sh

ascend: ## everything that runs on NPUs, on a fake of CANN: whole trainings, and every call failing in turn; about an hour
	GOTRAIN_TEST_HCCL_ALL=1 go test -timeout 60m ./npu/acl/... ./ddp/comm/hccl/...
	go test -tags ascend -timeout 180m -run NPU ./cmd/gotrain

bench: ## compare gotrain with its peers on this machine; bench/README.md lists what is needed
	go run ./bench/compare

bench-llama: ## the same for Llamas: training steps, and generation against memory bandwidth; takes hours
	go run ./bench/compare -what llama,generate -shape stories15M,d512

bench-net: ## all-reduces over TCP: loopback, and as root between network namespaces, also with a limit; BENCH_MARK_TCP names the bare program
	go run ./bench/compare -what net -net lo,veth,10gbit,1gbit

golden: ## rewrite golden files; look at the difference before committing it
	go test ./recipes ./cmd/gotrain ./internal/notices ./npu/acl/lower -update

docs: ## regenerate documentation from code
	go generate ./recipes ./npu/acl/lower

fuzz: ## every fuzz target for 10 minutes, one after the other
	bash scripts/fuzz.sh

deploy: ## check the files of deploy/ with the tools of their kind
	sh deploy/check.sh

release: ## archives for Linux and macOS, with notices, SBOM and checksums, in dist/, built twice and compared
	go run ./deploy/release -again
