package main

import (
	"strings"
	"testing"
)

// Any arguments give options, the help, or an error; everything after the program belongs to the program.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"-n 2 true -n 3", "-np=4 --grace 5s --no-pin true", "--nproc 1 -- true --help", "-n", "--", "-n 1 -h",
		"-n=2=3 true", "--grace= true", "-n 99999999999999999999 true", "-", "--mca a b -x A=1,2 -x B,C true", "--map-by ppr:2:node --nnodes 2:2 x",
	} {
		f.Add(strings.ReplaceAll(s, " ", "\n"))
	}
	f.Fuzz(func(t *testing.T, text string) {
		args := strings.Split(text, "\n")
		o, err := parse(args)
		if o.help || err != nil {
			if o.help && err != nil {
				t.Fatalf("%q: help and %v", args, err)
			}
			return
		}
		if o.ranks < 0 || o.grace < 0 || o.perNode < 0 || o.nnodes < 0 || o.port < 0 || o.port > 65535 {
			t.Fatalf("%q: %+v", args, o)
		}
		tail := args[len(args)-len(o.argv):]
		for i, a := range o.argv {
			if a != tail[i] {
				t.Fatalf("%q: the program is %q", args, o.argv)
			}
		}
	})
}
