package find

import (
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/gotrain/gotrain/ddp/launch"
)

// The limits of a token. Shorter ones can be guessed.
const (
	minToken = 16
	maxToken = 4096
)

// TokenHint says how to make a token.
const TokenHint = "make one with: (umask 077; openssl rand -hex 32 > token)"

// newToken returns a secret that can be text.
func newToken() []byte { return []byte(rand.Text() + rand.Text()) } // 2 × 26 letters and digits, 260 bits

// token returns the secret that the environment gives, or nil.
func token(lookup launch.Lookup) ([]byte, error) {
	f := &finder{lookup: lookup}
	bad := func(name, msg, hint string) ([]byte, error) {
		return nil, &launch.EnvError{Source: launch.SourceGotrain, Var: name, Msg: msg, Hint: hint}
	}
	name, text := "GOTRAIN_JOB_TOKEN", f.str("GOTRAIN_JOB_TOKEN")
	if path := f.str("GOTRAIN_TOKEN_FILE"); text == "" && path != "" {
		name = "GOTRAIN_TOKEN_FILE"
		b, err := readToken(path)
		if err != nil {
			msg, hint, _ := strings.Cut(err.Error(), "\nhint: ")
			return bad(name, msg, hint)
		}
		text = strings.TrimSpace(string(b))
	} else if text == "" {
		return nil, nil
	}
	switch {
	case len(text) < minToken:
		return bad(name, fmt.Sprintf("a token of %d characters can be guessed, it must have at least %d", len(text), minToken), TokenHint)
	case len(text) > maxToken:
		return bad(name, fmt.Sprintf("a token has at most %d characters", maxToken), TokenHint)
	}
	return []byte(text), nil
}

// readToken reads a file that only its owner can read.
func readToken(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if err := private(file, "hint: chmod 600 "+path); err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(file, maxToken+64))
}
