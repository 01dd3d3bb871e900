// Package text feeds language models: it turns text files into token ids, stores the ids in shards or in memory, and serves windows of them as samples.
//
// # In short
//
//	tok, err := tokenizer.Open("tokenizer.model")
//	train, val, err := text.FromText(ctx, []string{"shakespeare.txt"}, text.Options{Tokenizer: tok, ValFraction: 0.1})   // small text: in memory
//	report, err := text.Pack(ctx, "shards", files, text.PackOptions{Options: text.Options{Tokenizer: tok, BOS: true}})  // large text: once, to disk
//	train, err = text.OpenShards("shards", text.Train)
//	err = train.Match(tok)                                                  // the ids mean what the tokenizer says
//	src, err := text.NewSource(train, text.SourceOptions{Seq: 256, Documents: true, Vocab: tok.Vocab()})
//	l, err := data.NewLoader(src, data.Options{Batch: 8, Shuffle: true})    // as for every source
//
// # Documents
//
// A file is one document, or holds several: separated by blank lines, by a line such as <|endoftext|>, one per line, or one per line of
// JSON (see [Documents]). Text must be UTF-8. Documents are tokenised on all cores and stay in order. BOS, EOS or both are added to each one,
// and later mark the boundaries between documents.
//
// # Windows
//
// All documents form one sequence of ids. Window i holds the tokens i·S … i·S+S-1; its targets are the tokens shifted by one. So every token except
// the very first is a target exactly once, and the mean loss over all windows of a validation split gives the exact perplexity, with no
// token left out or counted twice (with Pad: the last window may be short). A token attends to the tokens before it in its window.
//
// With Documents, segments numbers the documents within a window, attention stays within one document, and the first token of a document is not a
// target, because nothing before it predicts it.
//
// Load depends only on the index, so data.Loader can shuffle windows and resume exactly in the middle of an epoch, on any number of ranks.
//
// # Shards
//
// A shard has llm.c's format: 256 little-endian int32 (magic, version, number of tokens, zeros), then the ids. Ids of a vocabulary up to
// 65536 are uint16 (magic 20240520, version 1); others are uint32 (magic 20240801, version 7). gotrain reads llm.c's shards, and llm.c reads gotrain's.
// Shards are mapped into memory, not read; a set may be larger than memory. Shard boundaries have no meaning: a split is one sequence.
//
// dataset.json in the same directory is the [Manifest]: the tokenizer's kind, fingerprint, size, BOS and EOS; for every split the documents, tokens,
// greatest id, and shards; the names and sizes of the inputs. A directory is written under a temporary name and renamed at the end, so it appears
// complete or not at all. Its bytes depend only on inputs and options.
package text
