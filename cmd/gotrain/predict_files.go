package main

import (
	"bufio"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// files yields the pictures that arguments name: files, folders, and - for a list on standard input. The error says why there is no picture.
func files(args []string, stdin io.Reader) func(yield func(string, error) bool) {
	return func(yield func(string, error) bool) {
		for _, arg := range args {
			more := false
			if arg == "-" {
				more = fromList(stdin, yield)
			} else {
				more = below(arg, yield)
			}
			if !more {
				return
			}
		}
	}
}

// fromList yields what the lines of a list name. It reports whether more is wanted.
func fromList(in io.Reader, yield func(string, error) bool) bool {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if s := strings.TrimRight(lines.Text(), "\r"); s != "" && !below(s, yield) {
			return false
		}
	}
	if err := lines.Err(); err != nil {
		return yield("standard input", fmt.Errorf("reading the list: %w", err))
	}
	return true
}

// isPicture judges by the ending, as folders of training data do.
func isPicture(name string) bool {
	return !strings.HasPrefix(name, ".") && slices.Contains([]string{".jpg", ".jpeg", ".png", ".gif"}, strings.ToLower(filepath.Ext(name)))
}

// below yields a file, or the pictures in a folder and below. A file that is not there is found out by whoever opens it.
func below(path string, yield func(string, error) bool) bool {
	if st, err := os.Stat(path); err != nil || !st.IsDir() {
		return yield(path, nil)
	}
	found, more := false, true
	err := filepath.WalkDir(path, func(at string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			if more = yield(at, err); !more {
				return fs.SkipAll
			}
			return nil
		case e.IsDir() && at != path && strings.HasPrefix(e.Name(), "."):
			return fs.SkipDir
		case e.IsDir() || !isPicture(e.Name()):
			return nil
		}
		if found, more = true, yield(at, nil); !more {
			return fs.SkipAll
		}
		return nil
	})
	if more && (err != nil || !found) {
		if err == nil {
			err = fmt.Errorf("the folder has no pictures (.jpg, .jpeg, .png, .gif)")
		}
		more = yield(path, err)
	}
	return more
}
