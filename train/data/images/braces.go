package images

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gotrain/gotrain/train/foreign"
)

// maxNames is the greatest number of names that a pattern may stand for.
const maxNames = 1 << 20

// Expand writes out the braces of a pattern as a shell does: {000..099} is 000, 001 … 099 with the zeros that are written, and {a,b} is a and b. Several
// braces give all combinations.
func Expand(pattern string) ([]string, error) {
	open := strings.IndexByte(pattern, '{')
	if open < 0 {
		if strings.IndexByte(pattern, '}') >= 0 {
			return nil, fmt.Errorf("images: pattern %q has } without {", pattern)
		}
		return []string{pattern}, nil
	}
	size := strings.IndexByte(pattern[open:], '}')
	if size < 0 || strings.IndexByte(pattern[open+1:open+size], '{') >= 0 {
		return nil, fmt.Errorf("images: pattern %q has { without }, or braces in braces", pattern)
	}
	words, err := alternatives(pattern[open+1 : open+size])
	if err != nil {
		return nil, fmt.Errorf("images: pattern %q: %w", pattern, err)
	}
	rest, err := Expand(pattern[open+size+1:])
	if err != nil {
		return nil, err
	}
	if len(words)*len(rest) > maxNames {
		return nil, fmt.Errorf("images: pattern %q stands for more than %d names", pattern, maxNames)
	}
	var out []string
	for _, w := range words {
		for _, r := range rest {
			out = append(out, pattern[:open]+w+r)
		}
	}
	return out, nil
}

// alternatives are the words that a brace stands for.
func alternatives(in string) ([]string, error) {
	from, to, isRange := strings.Cut(in, "..")
	if !isRange {
		words := strings.Split(in, ",")
		if len(words) < 2 {
			return nil, fmt.Errorf("{%s} is neither a range such as {000..099} nor a list such as {a,b}", in)
		}
		return words, nil
	}
	a, errA := strconv.Atoi(from)
	b, errB := strconv.Atoi(to)
	if errA != nil || errB != nil || a < 0 || b < a || b-a >= maxNames {
		return nil, fmt.Errorf("{%s} is no range: want two numbers, the smaller first", in)
	}
	width := 0
	if len(from) > 1 && from[0] == '0' || len(to) > 1 && to[0] == '0' {
		width = max(len(from), len(to))
	}
	var words []string
	for n := a; n <= b; n++ {
		words = append(words, fmt.Sprintf("%0*d", width, n))
	}
	return words, nil
}

// shardNames lists the files of a pattern below a folder, whose name is no pattern, in the order of braces, and those of * and ? in alphabetical order. All
// missing ones are named.
func shardNames(root, pattern string) ([]string, error) {
	if strings.Contains(pattern, "://") || strings.HasPrefix(pattern, "pipe:") {
		return nil, fmt.Errorf("images: %s is no file; shards are read from files\nhint: copy them to a disk, or mount the store as a file system", pattern)
	}
	list, err := Expand(pattern)
	if err != nil {
		return nil, err
	}
	var names, missing []string
	for _, p := range list {
		if !strings.ContainsAny(p, "*?[") {
			p = filepath.Join(root, p)
			if _, err := os.Stat(p); err != nil {
				missing = append(missing, p)
			}
			names = append(names, p)
			continue
		}
		found, err := foreign.Glob(filepath.Join(root, p))
		if err != nil {
			return nil, fmt.Errorf("images: pattern %q: %w", p, err)
		}
		if len(found) == 0 {
			missing = append(missing, filepath.Join(root, p))
		}
		names = append(names, found...)
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("images: %d of the shards of %s are missing: %s: %w", len(missing), filepath.Join(root, pattern), shorten(missing), os.ErrNotExist)
	}
	seen := map[string]bool{}
	for _, n := range names {
		if seen[n] {
			return nil, fmt.Errorf("images: pattern %s names %s twice", pattern, n)
		}
		seen[n] = true
	}
	return names, nil
}
