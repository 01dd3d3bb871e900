// Package tokenizer converts text to the token ids of a language model and back. It reads the tokenizers of the Llama family and similar models,
// implemented here from their formats: no library, no C.
//
// # In short
//
//	tok, err := tokenizer.Open("tokenizer.model")    // or tokenizer.json, tok512.bin, a rank file, a directory with one of them
//	ids := tok.Encode(nil, "Once upon a time")       // no BOS, no EOS
//	text := tok.Decode(nil, ids)
//
//	s := tokenizer.NewStream(tok)                    // whole characters only, token by token
//	for id := range generated {
//		os.Stdout.Write(s.Push(nil, id))
//	}
//
// # Kinds of file
//
// All are byte-pair encodings (Sennrich et al., arXiv 1508.07909): a word starts as bytes or characters, and the pair of neighbours that ranks first in the
// vocabulary is merged repeatedly until no pair merges. The kind of a file is detected by its content.
//
//   - SentencePiece .model (Llama 1 and 2, Mistral): BPE by score, byte fallback, add_dummy_prefix, remove_extra_whitespaces, user-defined
//     symbols. Unigram models and models with a precompiled character map are rejected.
//   - Hugging Face tokenizer.json: BPE with ByteLevel, with a Split by one of the known regular expressions (GPT-2, Llama 3, Qwen 2),
//     with Digits, with Prepend and Replace as in Llama 2 and Mistral, or with Metaspace; byte_fallback, fuse_unk, ignore_merges, added tokens
//     with all their flags.
//   - tiktoken rank files (base64 and rank per line): r50k_base (GPT-2), cl100k_base, Llama 3's tokenizer.model; others with [OpenRanks].
//   - llama2.c tok*.bin.
//
// If a file requires something that this package does not implement, that is an error that names it; nothing is silently ignored. Files may be hostile:
// sizes are limited, and work is bounded by n log n for a text of n bytes, for any vocabulary.
//
// # Special tokens
//
// Encode reads "</s>" in a text as four characters, because text comes from elsewhere and must not end a document. [SpecialEncoder] reads it as
// the token. Both recognise tokens that a tokenizer.json adds without marking them special, and user-defined symbols.
//
// # The leading space
//
// SentencePiece puts a space before a text. Decode and [Stream] remove it from the first token and from a token that follows BOS, as llama2.c does.
//
// # Known differences
//
// Letters, numbers and spaces are those of Go's unicode tables; a character added by a newer Unicode version may be split differently elsewhere.
// Hugging Face's library accepts only valid UTF-8; here invalid bytes become U+FFFD if symbols are characters, and stay bytes if symbols are bytes.
//
// If two added tokens are the same text after normalisation, Hugging Face's library finds a random one; here a special one wins, otherwise the
// first in the file. Decode writes an added token as spelt in the file: the library may write "é" of a ByteLevel vocabulary as a broken
// byte, puts a space before normalised ones, and omits the unknown token if it is special. If Metaspace strips the beginning,
// Decode removes one space from the first token, and the library every space in it.
package tokenizer
