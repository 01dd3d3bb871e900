package text

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/gotrain/gotrain/train/data/text/tokenizer"
)

// Options configures how text becomes ids.
type Options struct {
	Tokenizer tokenizer.Tokenizer
	Documents Documents
	// BOS and EOS add the tokenizer's begin id before and its end id after every document.
	BOS, EOS bool
	// ValFraction is the fraction of documents, spread evenly, that form the split "val". A single document is split by tokens: its end is "val".
	ValFraction float64
	// Workers is the number of goroutines; 0: GOMAXPROCS. The result does not depend on it.
	Workers int
	// Progress is called periodically, from one goroutine.
	Progress func(Progress)
}

// Progress reports how much work is done.
type Progress struct {
	Bytes, Total int64 // of text
	Documents    int64
	Tokens       int64
	Elapsed      time.Duration
}

func (o *Options) check() error {
	if o.Tokenizer == nil {
		return errors.New("text: no tokenizer")
	}
	if o.BOS && o.Tokenizer.BOS() < 0 {
		return fmt.Errorf("text: the tokenizer (%s) has no BOS token to put before documents", o.Tokenizer.Kind())
	}
	if o.EOS && o.Tokenizer.EOS() < 0 {
		return fmt.Errorf("text: the tokenizer (%s) has no EOS token to put after documents", o.Tokenizer.Kind())
	}
	if !(o.ValFraction >= 0 && o.ValFraction <= 0.5) {
		return fmt.Errorf("text: the validation fraction must be from 0 to 0.5, got %v", o.ValFraction)
	}
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	return o.Documents.check()
}

// InputError reports an unusable input: it is missing, unreadable, not text, or not divided as configured.
type InputError struct{ Err error }

func (e *InputError) Error() string { return e.Err.Error() }
func (e *InputError) Unwrap() error { return e.Err }

// jobBytes is the amount of text that a worker tokenises at a time.
const jobBytes = 256 << 10

// job is a batch of documents in progress.
type job struct {
	docs []doc
	ids  []int32
	ends []int // in ids, of each document
	done chan struct{}
	err  error // of the reader, after all documents
}

// tokenise reads the files and passes the ids of each document to sink, in the order of the text. Reading, encoding and writing overlap.
func tokenise(ctx context.Context, files []string, total int64, o *Options, sink func(ids []int32) error) (Progress, error) {
	ctx, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	work, order := make(chan *job), make(chan *job, 2*o.Workers)
	all.Go(func() {
		defer close(order)
		defer close(work)
		readAll(ctx, files, o, work, order)
	})
	for range o.Workers {
		all.Go(func() {
			for j := range work {
				j.encode(o)
			}
		})
	}
	begin := time.Now()
	p := Progress{Total: total}
	told := begin
	for j := range order {
		<-j.done
		at := 0
		for i, end := range j.ends {
			if err := sink(j.ids[at:end]); err != nil {
				return p, err
			}
			p.Documents, p.Tokens, p.Bytes = p.Documents+1, p.Tokens+int64(end-at), p.Bytes+int64(len(j.docs[i].text))
			at = end
		}
		if j.err != nil {
			return p, j.err
		}
		if now := time.Now(); o.Progress != nil && now.Sub(told) > 100*time.Millisecond {
			told, p.Elapsed = now, now.Sub(begin)
			o.Progress(p)
		}
	}
	p.Elapsed = time.Since(begin)
	return p, context.Cause(ctx)
}

// readAll divides the files into jobs; the last one carries the error.
func readAll(ctx context.Context, files []string, o *Options, work, order chan<- *job) {
	cur, size := &job{done: make(chan struct{})}, 0
	send := func() error {
		if ctx.Err() != nil {
			return errStop
		}
		j := cur
		cur, size = &job{done: make(chan struct{})}, 0
		select { // queued in order first, then handed to a worker, so the reader of the queue eventually finds it done
		case order <- j:
		case <-ctx.Done():
			return errStop
		}
		select {
		case work <- j:
		case <-ctx.Done():
			j.err = context.Cause(ctx)
			close(j.done)
			return errStop
		}
		return nil
	}
	r := &reader{Documents: o.Documents}
	r.emit = func(d doc) error {
		cur.docs = append(cur.docs, d)
		if size += len(d.text); size >= jobBytes {
			return send()
		}
		return nil
	}
	var err error
	for _, f := range files {
		if err = r.file(f); err != nil {
			break
		}
	}
	if s := o.Documents.Separator; err == nil && o.Documents.Field == "" && s != ByFile && s != ByBlank && s != ByLine && !r.seen {
		err = fmt.Errorf("text: no line is equal to the separator %q\nhint: put the separator on its own line between documents", s)
	}
	if errors.Is(err, errStop) {
		return
	}
	if err != nil {
		cur.err = &InputError{err}
	}
	_ = send() // it fails only if the context ends, which tokenise detects itself
}

// encode tokenises a job; an empty document has no ids, not even BOS.
func (j *job) encode(o *Options) {
	defer close(j.done)
	for _, d := range j.docs {
		if d.text != "" {
			if o.BOS {
				j.ids = append(j.ids, o.Tokenizer.BOS())
			}
			j.ids = o.Tokenizer.Encode(j.ids, d.text)
			if o.EOS {
				j.ids = append(j.ids, o.Tokenizer.EOS())
			}
		}
		j.ends = append(j.ends, len(j.ids))
	}
}
