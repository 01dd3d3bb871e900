// Command release builds what a release of gotrain consists of: an archive for each platform, and the SHA-256 of each.
//
//	go run ./deploy/release                                    # linux/amd64, linux/arm64, darwin/arm64, darwin/amd64, into dist
//	go run ./deploy/release -targets linux/amd64 -out /tmp/d
//	go run ./deploy/release -again                             # build all a second time, with an empty cache, and compare
//
// An archive has the programs, LICENSE, NOTICES.txt (the licences of everything linked in), README.md, SECURITY.md, the folders docs and deploy, and
// sbom.cdx.json, a list of components in CycloneDX 1.6 that is made from what the Go linker recorded in the programs.
//
// What is built is a commit, from a clone in a temporary folder: changes in the tree are no part of it. The version is the commit's tag vX.Y.Z, or a
// pseudo-version. For Linux, gotrain is built with cgo, for the fast device; the C library that it then needs must not be newer than [maxGlibc], so build on
// Debian 12 or older. linux/arm64 needs aarch64-linux-gnu-gcc, or CC, unless this machine is one. hcclrun is static. For macOS both are built without cgo.
//
// Builds are reproducible: the same commit, Go release and C compiler give the same bytes, wherever the source lies.
package main
