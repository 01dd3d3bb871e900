#!/usr/bin/env python3
"""Checks the manifests of this folder: Kubernetes' own kinds with kubernetes-validate, the kinds of operators with their definitions (CRDs).

    check.py MANIFEST... [--crd DEFINITION...]

A field that the definition does not have is an error, as with kubectl --validate=strict. A kind without a definition is named and counts as not checked.
Needs the package kubernetes-validate (which brings jsonschema and PyYAML).
"""
import argparse
import sys

import jsonschema
import kubernetes_validate
import yaml


def strict(node):
    """The schema with unknown fields forbidden where a definition lists fields, and with Kubernetes' int-or-string."""
    if isinstance(node, list):
        return [strict(n) for n in node]
    if not isinstance(node, dict):
        return node
    out = {k: strict(v) for k, v in node.items()}
    if out.pop("x-kubernetes-int-or-string", False):
        out.pop("anyOf", None)
        out["type"] = ["integer", "string"]
    if isinstance(out.get("properties"), dict) and not out.get("x-kubernetes-preserve-unknown-fields"):
        out.setdefault("additionalProperties", False)
    return out


def definitions(paths):
    found = {}
    for path in paths:
        for crd in yaml.safe_load_all(open(path)):
            if not crd or crd.get("kind") != "CustomResourceDefinition":
                continue
            for v in crd["spec"]["versions"]:
                schema = strict(v["schema"]["openAPIV3Schema"])
                schema["properties"]["metadata"] = {"type": "object"}
                found[crd["spec"]["group"] + "/" + v["name"], crd["spec"]["names"]["kind"]] = schema
    return found


def main():
    p = argparse.ArgumentParser()
    p.add_argument("manifests", nargs="+")
    p.add_argument("--crd", nargs="*", default=[])
    args = p.parse_args()
    kinds, bad = definitions(args.crd), 0
    for path in args.manifests:
        for doc in yaml.safe_load_all(open(path)):
            name = doc["apiVersion"], doc["kind"]
            problems = []
            if name in kinds:
                problems = [f"{e.json_path}: {e.message}" for e in jsonschema.Draft7Validator(kinds[name]).iter_errors(doc)]
            elif "." in doc["apiVersion"].partition("/")[0].replace(".k8s.io", ""):
                print(f"{path}: {name[1]} is not checked: no definition of {name[0]}")
                continue
            else:
                try:
                    kubernetes_validate.validate(doc, kubernetes_validate.latest_version(), strict=True)
                except kubernetes_validate.ValidationError as e:
                    problems = [str(e)]
            for problem in problems:
                print(f"{path}: {problem}")
            bad += len(problems)
            if not problems:
                print(f"{path}: {name[1]} of {name[0]} is valid")
    sys.exit(1 if bad else 0)


main()
