package assemble

import (
	"context"
	"log/slog"
	"time"

	"github.com/gotrain/gotrain/ddp/comm"
	"github.com/gotrain/gotrain/recipes"
	"github.com/gotrain/gotrain/train"
	"github.com/gotrain/gotrain/train/data/images"
)

// sharing is how the ranks of a job open a data folder: with one listing of rank 0, or each with its own.
type sharing struct {
	group comm.Communicator // nil: each rank reads the folder
	ctx   func() (context.Context, context.CancelFunc)
}

// share finds out how the ranks open the folder, and says so where there are several machines. All ranks must call it.
func share(r *recipes.Recipe, rank Rank, root string) (sharing, error) {
	s := sharing{ctx: func() (context.Context, context.CancelFunc) {
		seconds := func(v float64) time.Duration { return time.Duration(v * float64(time.Second)) }
		return comm.Patient(context.Background(), seconds(r.Train.TimeoutSeconds), seconds(r.Train.LongWorkSeconds))
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

// folder opens a folder of pictures.
func (s sharing) folder(root string, o images.FolderOptions) (*images.Folder, error) {
	if s.group == nil {
		return images.NewFolder(root, o)
	}
	ctx, cancel := s.ctx()
	defer cancel()
	if s.group.Rank() != 0 {
		var err error
		if o.Listing, err = train.Share(ctx, s.group, nil); err != nil {
			return nil, err
		}
		return images.NewFolder(root, o)
	}
	f, err := images.NewFolder(root, o)
	if err != nil {
		return nil, err // the caller tells the others
	}
	_, err = train.Share(ctx, s.group, f.Listing())
	return f, err
}
