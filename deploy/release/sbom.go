package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gotrain/gotrain/internal/notices"
)

// The parts of CycloneDX 1.6 (https://cyclonedx.org/docs/1.6/json) that a list of linked modules needs.
type (
	bom struct {
		Schema       string       `json:"$schema"`
		Format       string       `json:"bomFormat"`
		Spec         string       `json:"specVersion"`
		Serial       string       `json:"serialNumber"`
		Version      int          `json:"version"`
		Metadata     metadata     `json:"metadata"`
		Components   []component  `json:"components"`
		Dependencies []dependency `json:"dependencies"`
	}
	metadata struct {
		Timestamp string    `json:"timestamp"`
		Component component `json:"component"`
	}
	component struct {
		Type       string          `json:"type"`
		Ref        string          `json:"bom-ref"`
		Name       string          `json:"name"`
		Version    string          `json:"version,omitempty"`
		PURL       string          `json:"purl,omitempty"`
		Licences   []licenceChoice `json:"licenses,omitempty"`
		Properties []property      `json:"properties,omitempty"`
	}
	licenceChoice struct {
		Licence licence `json:"license"`
	}
	licence struct {
		ID string `json:"id"`
	}
	property struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	dependency struct {
		Ref  string   `json:"ref"`
		Uses []string `json:"dependsOn,omitempty"`
	}
)

// bill lists what the programs contain, as the Go linker has recorded it: modules, the standard library, and the bundled data.
func bill(t target, when time.Time, programs []string) ([]byte, error) {
	covered := covers(notices.Text())
	all := map[string]component{}
	var top component
	for _, p := range programs {
		info, err := buildinfo.ReadFile(p)
		if err != nil {
			return nil, err
		}
		purl := "pkg:golang/" + info.Main.Path + "@" + info.Main.Version
		top = component{Type: "application", Ref: purl, Name: "gotrain", Version: info.Main.Version, PURL: purl, Licences: choices("Apache-2.0"),
			Properties: append(top.Properties, property{"gotrain:program", filepath.Base(p) + " for " + t.String() + ", cgo " + setting(info, "CGO_ENABLED")})}
		std := strings.TrimPrefix(info.GoVersion, "go")
		all["std"] = component{Type: "library", Ref: "pkg:golang/std@" + std, Name: "std", Version: std, PURL: "pkg:golang/std@" + std,
			Licences: choices(covered["the Go standard library and runtime"])}
		for _, m := range info.Deps {
			if m.Replace != nil {
				m = m.Replace
			}
			purl := "pkg:golang/" + m.Path + "@" + m.Version
			all[m.Path] = component{Type: "library", Ref: purl, Name: m.Path, Version: m.Version, PURL: purl, Licences: choices(covered[m.Path+" "+m.Version]),
				Properties: []property{{"go.sum", m.Sum}}}
		}
	}
	for name, id := range covered {
		if set, ok := strings.CutPrefix(name, "the bundled data set "); ok {
			all[name] = component{Type: "data", Ref: "data:" + set, Name: set, Licences: choices(id)}
		}
	}
	b := bom{Schema: "http://cyclonedx.org/schema/bom-1.6.schema.json", Format: "CycloneDX", Spec: "1.6", Version: 1,
		Metadata: metadata{when.Format(time.RFC3339), top}}
	uses := dependency{Ref: top.Ref}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		b.Components = append(b.Components, all[key])
		uses.Uses = append(uses.Uses, all[key].Ref)
	}
	b.Dependencies = []dependency{uses}
	plain, err := json.Marshal(b)
	if err != nil {
		return nil, err
	}
	h := sha256.Sum256(plain) // the same content has the same serial number: a UUID of version 8
	h[6], h[8] = h[6]&0x0f|0x80, h[8]&0x3f|0x80
	b.Serial = fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", h[:4], h[4:6], h[6:8], h[8:10], h[10:16])
	text, err := json.MarshalIndent(b, "", "  ")
	return append(text, '\n'), err
}

func setting(info *buildinfo.BuildInfo, key string) string {
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return "unknown"
}

func choices(ids string) (out []licenceChoice) {
	for id := range strings.FieldsSeq(ids) {
		out = append(out, licenceChoice{licence{id}})
	}
	return out
}

// covers returns the SPDX identifiers of the licences of everything that the notices name, separated by blanks; "" where a text is none of the usual ones.
func covers(text string) map[string]string {
	out := map[string]string{}
	_, blocks, _ := strings.Cut(text, "\n"+strings.Repeat("=", 80)+"\n")
	for block := range strings.SplitSeq(blocks, "\n"+strings.Repeat("=", 80)+"\n") {
		names, body, _ := strings.Cut(block, "\n\n")
		for name := range strings.SplitSeq(names, "\n") {
			if id := identify(body); !slices.Contains(strings.Fields(out[name]), id) {
				out[name] = strings.TrimSpace(out[name] + " " + id)
			}
		}
	}
	return out
}

// identify recognises the usual licences by the words that each must contain.
func identify(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	has := func(words string) bool { return strings.Contains(text, words) }
	switch {
	case has("Apache License") && has("Version 2.0"):
		return "Apache-2.0"
	case has("Redistribution and use in source and binary forms") && (has("Neither the name") || has("names of its contributors")):
		return "BSD-3-Clause"
	case has("Redistribution and use in source and binary forms"):
		return "BSD-2-Clause"
	case has("Permission is hereby granted, free of charge"):
		return "MIT"
	}
	return ""
}
