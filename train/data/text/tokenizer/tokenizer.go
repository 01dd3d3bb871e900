package tokenizer

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gotrain/gotrain/train/foreign"
)

// Tokenizer converts text to ids and back. All methods may be called concurrently.
type Tokenizer interface {
	// Encode appends the ids of text to dst. It adds neither BOS nor EOS, and text that spells a special token is plain text.
	Encode(dst []int32, text string) []int32
	// Decode appends the text of ids to dst. Special tokens have no text; the first token, and one after BOS, loses the space that Encode put before
	// the text. The bytes are those of the ids: ids that were cut inside a character give half a character (see Stream). An id outside the vocabulary is U+FFFD.
	Decode(dst []byte, ids []int32) []byte
	// Vocab is one more than the greatest id.
	Vocab() int
	// BOS and EOS are the ids that begin and end a text, -1 where the file names none.
	BOS() int32
	EOS() int32
	// Kind is one of Kinds.
	Kind() string
	// Fingerprint is a short hash of what every id means. The same vocabulary gives the same one from whatever kind of file.
	Fingerprint() string
}

// SpecialEncoder is a Tokenizer that knows special tokens by name. All tokenizers of this package implement it.
type SpecialEncoder interface {
	Tokenizer
	// EncodeSpecial is Encode, but text that spells a special token becomes its id. For trusted text: prompts, templates.
	EncodeSpecial(dst []int32, text string) []int32
	// Special finds a special token by its exact name, such as "<|eot_id|>".
	Special(name string) (id int32, ok bool)
}

// Piecer is a Tokenizer that can show a single token. All tokenizers of this package implement it.
type Piecer interface {
	// Piece is the token as usually written: "▁the", "<0x0A>", "</s>".
	Piece(id int32) string
}

// The values of Kind.
const (
	SentencePiece = "sentencepiece" // a .model with BPE
	HuggingFace   = "huggingface"   // a tokenizer.json with BPE
	Tiktoken      = "tiktoken"      // a file of ranks
	Llama2C       = "llama2.c"      // a tok*.bin
)

// Kinds are the values of Kind.
var Kinds = []string{SentencePiece, HuggingFace, Tiktoken, Llama2C}

// Limits on files. Real ones stay below (the largest have 35 MB and 260,000 tokens); a hostile one is refused before it takes memory or time.
const (
	maxFile   = 64 << 20 // bytes of a file
	maxVocab  = 1 << 21  // tokens
	maxPieces = 32 << 20 // bytes of all tokens
	maxPiece  = 2048     // bytes of a token
	maxPairs  = 8 << 20  // ways to make a token of two
)

// Open reads a tokenizer. The path is a file of any kind, detected by content and not by name, or a directory with one of tokenizer.json,
// tokenizer.model and tok*.bin, searched in that order. With a tokenizer.json, Open also reads tokenizer_config.json if it exists: it names BOS and EOS.
func Open(path string) (Tokenizer, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	if st.IsDir() {
		if path, err = find(path); err != nil {
			return nil, err
		}
	}
	raw, err := readLimited(path)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	var config []byte
	if looksJSON(raw) {
		beside := filepath.Join(filepath.Dir(path), "tokenizer_config.json")
		if config, err = readLimited(beside); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("tokenizer: %w", err)
		}
	}
	t, err := parse(raw, config)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %s: %w", path, err)
	}
	return t, nil
}

// Parse is Open for a file that is in memory.
func Parse(raw []byte) (Tokenizer, error) {
	t, err := parse(raw, nil)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	return t, nil
}

func parse(raw, config []byte) (*model, error) {
	switch {
	case len(raw) == 0:
		return nil, errors.New("the file is empty")
	case bytes.HasPrefix(raw, []byte("version https://git-lfs")):
		return nil, errors.New("this is a Git LFS pointer, not the file itself\nhint: run git lfs pull")
	case looksJSON(raw):
		return parseHF(raw, config)
	case looksRanks(raw):
		return parseRanks(raw, RankOptions{})
	case looksLlama2C(raw):
		return parseLlama2C(raw)
	case raw[0] == 0x0a: // field 1 of the message, the first piece
		return parseSentencePiece(raw)
	}
	return nil, errors.New("unknown kind of tokenizer\nhint: use a SentencePiece .model, a tokenizer.json, a tiktoken rank file or a llama2.c tok*.bin")
}

func looksJSON(raw []byte) bool {
	raw = bytes.TrimLeft(bytes.TrimPrefix(raw, []byte("\xef\xbb\xbf")), " \t\r\n")
	return len(raw) > 0 && raw[0] == '{'
}

// find chooses the tokenizer's file of a directory.
func find(dir string) (string, error) {
	for _, name := range []string{"tokenizer.json", "tokenizer.model"} {
		p := filepath.Join(dir, name)
		if st, err := os.Stat(p); err == nil && st.Mode().IsRegular() {
			return p, nil
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", fmt.Errorf("tokenizer: %w", err)
	}
	var found []string
	for _, e := range entries {
		if n := e.Name(); strings.HasPrefix(n, "tok") && strings.HasSuffix(n, ".bin") {
			found = append(found, n)
		}
	}
	slices.Sort(found)
	switch len(found) {
	case 0:
		return "", fmt.Errorf("tokenizer: %s has no tokenizer: %w\nhint: add tokenizer.json, tokenizer.model or tok*.bin", dir, os.ErrNotExist)
	case 1:
		return filepath.Join(dir, found[0]), nil
	}
	return "", fmt.Errorf("tokenizer: %s has several tokenizers: %s\nhint: give the path of the file", dir, strings.Join(found, ", "))
}

func readLimited(path string) ([]byte, error) {
	raw, err := foreign.ReadFile(path, maxFile)
	if errors.Is(err, foreign.ErrLarge) {
		return nil, fmt.Errorf("too large for a tokenizer (limit %d MB): %w", maxFile>>20, err)
	}
	return raw, err
}
