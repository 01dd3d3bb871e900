package main

import (
	"strings"
	"testing"
)

// Any arguments give a job that can be started, the help, or an error; everything after the program belongs to the program.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"-n 2 true -n 3", "-np=4 --grace 5s --no-pin true", "--nproc 1 -- true --help", "-n", "--", "-n 1 -h",
		"-n=2=3 true", "--grace= true", "-n 99999999999999999999 true", "-",
	} {
		f.Add(strings.ReplaceAll(s, " ", "\n"))
	}
	f.Fuzz(func(t *testing.T, text string) {
		args := strings.Split(text, "\n")
		job, help, err := parse(args)
		if help || err != nil {
			if help && err != nil {
				t.Fatalf("%q: help and %v", args, err)
			}
			return
		}
		if job.Ranks < 1 || job.Grace < 0 || len(job.Argv) == 0 {
			t.Fatalf("%q: %+v", args, job)
		}
		tail := args[len(args)-len(job.Argv):]
		for i, a := range job.Argv {
			if a != tail[i] {
				t.Fatalf("%q: the program is %q", args, job.Argv)
			}
		}
	})
}
