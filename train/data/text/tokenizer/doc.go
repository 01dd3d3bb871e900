// Package tokenizer turns text into the token ids of a language model and back. It reads the tokenizers of the Llama family and their
// relatives, and is written here from the formats: no library, no C.
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
// All are byte-pair encodings (Sennrich et al., arXiv 1508.07909): a word begins as bytes or characters, and the two neighbours that the
// vocabulary ranks first are joined until no two join. A file's kind is told by its content.
//
//   - SentencePiece .model (Llama 1 and 2, Mistral): BPE by score, byte fallback, add_dummy_prefix, remove_extra_whitespaces, user-defined
//     symbols. Unigram models and
//     those with a precompiled map of characters are refused.
//   - Hugging Face tokenizer.json: BPE with ByteLevel, with a Split by one of the known regular expressions (GPT-2, Llama 3, Qwen 2's),
//     with Digits, with Prepend and Replace as Llama 2
//     and Mistral have it, or with Metaspace; byte_fallback, fuse_unk, ignore_merges, added tokens with all their flags.
//   - tiktoken rank files (base64 and rank per line): r50k_base (GPT-2), cl100k_base, Llama 3's tokenizer.model; others by [OpenRanks].
//   - llama2.c tok*.bin.
//
// What a file asks for and this package does not do is an error that names it; nothing is silently left out. A file may be hostile: sizes
// are limited, and work is bounded by n log n for a text of n bytes, whatever the vocabulary.
//
// # Special tokens
//
// Encode reads "</s>" in a text as four characters, for text comes from elsewhere and must not end a document. [SpecialEncoder] reads it as
// the token. Tokens that a tokenizer.json adds without calling them special, and user-defined symbols, are found by both.
//
// # The leading space
//
// SentencePiece puts a space before a text. Decode and [Stream] take it away from the first token and from one that follows BOS, as llama2.c does.
//
// # Known differences
//
// Letters, numbers and spaces are those of Go's unicode tables; a character that a newer Unicode added may be cut differently elsewhere. A
// Hugging Face library reads only valid UTF-8; here bytes that are none become U+FFFD where symbols are characters, and stay bytes where
// symbols are bytes.
//
// Of two added tokens that are the same text once normalised, Hugging Face's library finds a random one; here a special one wins, else the
// first of the file. Decode writes an added token as the file spells it: the library may write "é" of a ByteLevel vocabulary as a broken
// byte, puts a space before normalised ones, and leaves out the unknown token where it is special. Where Metaspace strips the beginning,
// Decode takes one space from the first token and the library every one in it.
package tokenizer
