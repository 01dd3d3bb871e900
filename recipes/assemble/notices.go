package assemble

import (
	"context"
	"log/slog"
	"strings"
	"sync"

	"github.com/gotrain/gotrain/train/data"
)

// notices logs what is found in the data, once for a job and not once for each of its ranks.
type notices struct {
	rank int
	exif sync.Once
}

// severity is the level of a message that every rank would log alike: a warning on rank 0, a detail on the others.
func severity(rank int) slog.Level {
	if rank == 0 {
		return slog.LevelWarn
	}
	return slog.LevelDebug
}

// turned reports pictures whose EXIF orientation is not applied.
func (n *notices) turned(path string) {
	n.exif.Do(func() {
		slog.Log(context.Background(), severity(n.rank), "pictures are used as stored, like in torchvision's ImageFolder, but some have an EXIF "+
			"orientation that would turn them; "+
			"set data.exif_orientation = true to apply it", "first", path)
	})
}

// untrained reports classes without a training sample, such as those between labels that are numbers with gaps: the network gets an output for each of them.
func (n *notices) untrained(src data.Source) {
	s, ok := src.(interface{ Empty() []string })
	if !ok || n.rank != 0 {
		return
	}
	none := s.Empty()
	if len(none) == 0 {
		return
	}
	names := strings.Join(none[:min(len(none), 20)], ", ")
	if len(none) > 20 {
		names += ", …"
	}
	slog.Warn("some classes have no training samples; labels that are numbers should be 0, 1, 2 and so on without gaps", "classes", names,
		"empty", len(none), "of", len(src.Classes()))
}

// marked reports rows of a CSV file that are trained on although the file marks them as held out.
func (n *notices) marked(src data.Source) {
	if s, ok := src.(interface{ Marked() int }); ok && n.rank == 0 && s.Marked() > 0 {
		slog.Warn("all rows are for training, also those that the file marks as held out; set data.eval_split to the same file to hold them out", "data", src.Name(),
			"marked", s.Marked(), "rows", src.Len())
	}
}

// damaged reports a damaged picture the first time that it is read. Shuffled training samples come to every rank in time, so rank 0 reports them; a held-out
// sample is always read by the same rank, which reports it.
func (n *notices) damaged(shuffled bool) func(path, message string) {
	level := slog.LevelWarn
	if shuffled {
		level = severity(n.rank)
	}
	var seen sync.Map
	return func(path, message string) {
		if _, again := seen.LoadOrStore(path, true); !again {
			slog.Log(context.Background(), level, "damaged picture is used as far as it can be read", "file", path, "reason", message)
		}
	}
}
