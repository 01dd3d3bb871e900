package assemble

import (
	"context"
	"log/slog"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/recipes"
	"github.com/gotrain/gotrain/train"
	"github.com/gotrain/gotrain/train/data"
	"github.com/gotrain/gotrain/train/data/images"
)

// sharing is how the ranks of a job open a data folder: with one listing of rank 0, or each with its own.
type sharing struct {
	group comm.Communicator // nil: each rank reads the folder
	ctx   func() (context.Context, context.CancelFunc)
}

// share finds out how the ranks open the folder, and says so where there are several machines. All ranks must call it.
func share(ctx context.Context, r *recipes.Recipe, rank Rank, root string) (sharing, error) {
	s := sharing{ctx: func() (context.Context, context.CancelFunc) {
		seconds := func(v float64) time.Duration { return time.Duration(v * float64(time.Second)) }
		return comm.Patient(ctx, seconds(r.Train.TimeoutSeconds), seconds(r.Train.LongWorkSeconds))
	}}
	if rank.Comm == nil || rank.World == 1 || r.Data.Kind == "synthetic" {
		return s, nil
	}
	same := r.Data.Shared == "true"
	if r.Data.Shared == "auto" {
		ctx, cancel := s.ctx()
		defer cancel()
		var err error
		if same, err = train.SameFolder(ctx, rank.Comm, root); err != nil {
			return s, err
		}
	}
	if same {
		s.group = rank.Comm
	}
	if rank.Rank == 0 && rank.LocalWorld != rank.World {
		if same {
			slog.Info("all hosts read the same data folder", "folder", root)
		} else {
			slog.Info("each machine reads its own copy of the data; the copies must be equal, and are compared", "folder", root)
		}
	}
	return s, nil
}

// lister is a source that can tell other ranks what it found.
type lister interface{ Listing() []byte }

// listed opens pictures with one listing of rank 0, or with a listing of its own.
func listed[S lister](s sharing, o images.Options, open func(images.Options) (S, error)) (data.Source, error) {
	src, err := listedAs(s, o, open)
	if err != nil {
		return nil, err
	}
	return any(src).(data.Source), nil
}

func listedAs[S lister](s sharing, o images.Options, open func(images.Options) (S, error)) (src S, err error) {
	if s.group == nil {
		return open(o)
	}
	ctx, cancel := s.ctx()
	defer cancel()
	if s.group.Rank() != 0 {
		if o.Listing, err = train.Share(ctx, s.group, nil); err != nil {
			return src, err
		}
		return open(o)
	}
	if src, err = open(o); err != nil {
		return src, err // the caller tells the others
	}
	_, err = train.Share(ctx, s.group, src.Listing())
	return src, err
}
