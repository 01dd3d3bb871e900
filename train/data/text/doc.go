// Package text feeds language models: text files become token ids, ids become shards or stay in memory, and windows of them are the samples of a run.
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
// A file is a document, or holds several: divided by blank lines, by a line such as <|endoftext|>, one on each line, or one in each line of
// JSON (see [Documents]). Text must be UTF-8. Documents are tokenised on all cores and stay in order. BOS, EOS or both go around each one,
// and are how documents are told apart later.
//
// # Windows
//
// All documents are one run of ids. Window i is the tokens i·S … i·S+S-1, its targets are the tokens one further on. So every token but the
// very first is a target exactly once, and the mean loss over all windows of a validation split gives the exact perplexity, without any
// token left out or counted twice (with Pad: the last window may be short). A token sees what is before it in its window.
//
// With Documents, segments numbers the documents within a window, attention stays within one, and the first token of a document is no
// target: nothing of what is before it tells it.
//
// Load depends on the index only, thus data.Loader shuffles windows and resumes in the middle of an epoch exactly, on any number of ranks.
//
// # Shards
//
// A shard is a file of llm.c: 256 little-endian int32 (magic, version, number of tokens, zeros), then the ids. Ids of a vocabulary up to
// 65536 are uint16 (magic 20240520, version 1); others uint32 (magic 20240801, version 7). Shards of llm.c can be read, and the other way
// round. They are mapped into memory, not read; a set may be larger than memory. Where a split is cut into shards means nothing: it is one
// run.
//
// dataset.json beside them is the [Manifest]: the tokenizer's kind, fingerprint, size, BOS and EOS; of every split the documents, tokens,
// greatest id, and shards; the names and sizes of the inputs. A directory is written under another name and renamed at the end, so it is
// whole or not there. The bytes depend on inputs and options only.
package text
