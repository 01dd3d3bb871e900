package images

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gotrain/gotrain/npu"
	"github.com/gotrain/gotrain/train/data"
)

// FolderOptions say how pictures of a Folder become samples.
type FolderOptions struct {
	Transform Transform // required
	Norm      Norm      // zero: values from 0 to 1
	// Classes fixes the labels: the names of the sub-folders by label, usually those of the training set when this is the
	// validation set. Nil: the sub-folders in alphabetical order, as torchvision numbers them.
	Classes []string
	// Listing is what Folder.Listing returned where the same folder was read, by another rank for example. nil: read the folder.
	Listing []byte
	// Decoder chooses the JPEG decoder; empty is Auto.
	Decoder Backend
	// MaxPixels rejects larger pictures; 0 is DefaultMaxPixels.
	MaxPixels int
	// Orient applies the EXIF orientation. torchvision's ImageFolder does not, and neither does the default here.
	Orient bool
	// Turned is called for the first picture whose orientation is not applied because Orient is false. It may be nil.
	Turned func(path string)
	// Warn is called for files that are damaged but readable, possibly concurrently. Nil ignores them, as Pillow does.
	Warn func(path, message string)
}

// Folder is a data.Source of pictures laid out as ROOT/CLASS/FILE. Fields: image f32[3 H W], label i32.
type Folder struct {
	root    string
	classes []string
	files   []file
	opt     FolderOptions
	fields  []data.Field
	planes  []*levels
	pool    pool[scratch]
	backend Backend
	turned  sync.Once // guards the call of Turned
	took    [3]atomic.Int64
}

type file struct {
	name  string // within its class folder
	label int32
}

// NewFolder lists the pictures below root; it does not open them. Names decide only which files are pictures (.jpg, .jpeg, .png, .gif in any case); formats
// are detected by content when a file is loaded. Names that begin with a dot, and files that are not pictures (.txt, .json …), are skipped.
//
// It rejects, with the place: a root without class folders or with pictures next to them, an empty class, a folder in a class (often root is one level too
// high), a class that Classes lacks, and picture formats that cannot be read (they would silently be missing from the training).
func NewFolder(root string, o FolderOptions) (*Folder, error) {
	if o.Transform == nil {
		return nil, errors.New("images: a folder needs a transform, which resizes its pictures to one size")
	}
	if err := errors.Join(o.Transform.Check(), o.Norm.Check()); err != nil {
		return nil, err
	}
	first, err := NewDecoder(o.Decoder)
	if err != nil {
		return nil, err
	}
	f := &Folder{root: root, opt: o, backend: first.Backend()}
	w, h := o.Transform.Size()
	f.fields = imageFields(3, h, w)
	f.planes = planes(o.Norm, 3)
	first.MaxPixels = o.MaxPixels
	f.pool.put(&scratch{dec: first})
	read := f.list
	if o.Listing != nil {
		read = f.listed
	}
	if err := read(); err != nil {
		return nil, err
	}
	return f, nil
}

func imageFields(c, h, w int) []data.Field {
	return []data.Field{{Name: "image", Shape: []int{c, h, w}, DType: npu.F32}, {Name: "label", DType: npu.I32, Target: true}}
}

// list reads the directories.
func (f *Folder) list() error {
	dirs, loose, err := readDir(f.root)
	if err != nil {
		return fmt.Errorf("images: %w", err)
	}
	if len(dirs) == 0 {
		return fmt.Errorf(
			"images: %s has no class folders\nhint: put pictures in %s, one folder per class",
			f.root,
			filepath.Join(f.root, "CLASS", "FILE.jpg"),
		)
	}
	if len(loose) > 0 {
		return fmt.Errorf("images: %s is next to the class folders, so its class is unknown\nhint: move it into a class folder, or check that %s is the right folder",
			filepath.Join(f.root, loose[0]), f.root)
	}
	f.classes = dirs
	if f.opt.Classes != nil {
		f.classes = f.opt.Classes
		unknown := slices.DeleteFunc(slices.Clone(dirs), func(d string) bool { return slices.Contains(f.classes, d) })
		if len(unknown) > 0 {
			return fmt.Errorf(
				"images: %s has class folders that are not among the %d classes of the training set (%s): %s\nhint: rename them to classes of the model, "+
					"or move them away",
				f.root,
				len(f.classes),
				shorten(f.classes),
				shorten(unknown),
			)
		}
	}
	var problems []error
	for _, d := range dirs {
		if err := f.listClass(d, int32(slices.Index(f.classes, d))); err != nil {
			if problems = append(problems, err); len(problems) == 10 {
				break
			}
		}
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}
	slices.SortStableFunc(f.files, func(a, b file) int { return cmp.Compare(a.label, b.label) })
	return nil
}

func (f *Folder) listClass(class string, label int32) error {
	dir := filepath.Join(f.root, class)
	subs, names, err := readDir(dir)
	if err != nil {
		return fmt.Errorf("images: %w", err)
	}
	if len(subs) > 0 {
		return fmt.Errorf("images: class folder %s contains a folder, %q\nhint: class folders must hold only files; did you mean %s as the root?", dir, subs[0], dir)
	}
	count := len(f.files)
	for _, n := range names {
		f.files = append(f.files, file{n, label})
	}
	if len(f.files) == count {
		return fmt.Errorf("images: class folder %s has no pictures (.jpg, .jpeg, .png, .gif)\nhint: add pictures or remove it", dir)
	}
	return nil
}

// readDir gives the folders and the pictures of a directory, sorted by name; symbolic links count as what they point at.
func readDir(dir string) (dirs, pictures []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		name := e.Name()
		if strings.HasPrefix(name, ".") {
			continue
		}
		mode := e.Type()
		if mode&fs.ModeSymlink != 0 {
			st, err := os.Stat(filepath.Join(dir, name))
			if err != nil {
				return nil, nil, err
			}
			mode = st.Mode().Type()
		}
		switch ext := strings.ToLower(filepath.Ext(name)); {
		case mode.IsDir():
			dirs = append(dirs, name)
		case !mode.IsRegular(): // a pipe or a device: opening it could block
		case ext == ".jpg" || ext == ".jpeg" || ext == ".png" || ext == ".gif":
			pictures = append(pictures, name)
		case slices.Contains(unreadable, ext):
			return nil, nil, fmt.Errorf(
				"%s: format %s is not supported\nhint: convert it to JPEG or PNG, or move it away",
				filepath.Join(dir, name),
				ext,
			)
		}
	}
	return dirs, pictures, nil
}

// unreadable lists formats that torchvision may load and gotrain cannot.
var unreadable = []string{".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp", ".jpe", ".jfif", ".avif", ".heic", ".jxl", ".jp2"}

func shorten(names []string) string {
	if len(names) > 6 {
		return strings.Join(names[:5], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}

// Name is "folder ROOT".
func (f *Folder) Name() string { return "folder " + f.root }

// Len is the number of pictures.
func (f *Folder) Len() int { return len(f.files) }

// Classes are the folder names by label.
func (f *Folder) Classes() []string { return f.classes }

// Empty lists the classes without pictures, in the order of labels.
func (f *Folder) Empty() []string {
	has := make([]bool, len(f.classes))
	for _, x := range f.files {
		has[x.label] = true
	}
	var out []string
	for label, name := range f.classes {
		if !has[label] {
			out = append(out, name)
		}
	}
	return out
}

// Fields are image and label.
func (f *Folder) Fields() []data.Field { return f.fields }

// Backend says which decoder is used for JPEGs that package baseline refuses: "turbo" or "go".
func (f *Folder) Backend() Backend { return f.backend }

// Decoders says in words what decodes JPEGs.
func (f *Folder) Decoders() string {
	switch {
	case f.opt.Decoder == Go:
		return "Go"
	case f.backend == Turbo:
		return "gotrain, unusual ones by libjpeg-turbo"
	}
	return "gotrain, unusual ones by Go"
}

// Stages are reading a file, decoding what is needed of it, and resizing with all that follows.
func (f *Folder) Stages() []data.Stage {
	s := []data.Stage{{Name: "read"}, {Name: "decode"}, {Name: "resize and convert"}}
	for i := range s {
		s[i].Took = time.Duration(f.took[i].Load())
	}
	return s
}

// Path is the file of sample i.
func (f *Folder) Path(i int) string {
	return filepath.Join(f.root, f.classes[f.files[i].label], f.files[i].name)
}

// Label is the label of sample i, known without loading it.
func (f *Folder) Label(i int) int { return int(f.files[i].label) }

// Fingerprint hashes all names and the sizes of up to 4096 files, evenly chosen.
func (f *Folder) Fingerprint() (string, error) {
	h := fnv.New64a()
	step := max(1, len(f.files)/4096)
	for i, x := range f.files {
		size := int64(-1)
		if i%step == 0 {
			st, err := os.Stat(f.Path(i))
			if err != nil {
				return "", fmt.Errorf("images: %w", err)
			}
			size = st.Size()
		}
		fmt.Fprintf(h, "%d/%s %d\n", x.label, x.name, size)
	}
	fmt.Fprintln(h, f.classes)
	return fmt.Sprintf("%016x", h.Sum64()), nil
}

// Preparation says how a picture becomes a sample where nothing is augmented, for predictions: see data.Preparing.
func (f *Folder) Preparation() json.RawMessage {
	w, h := f.opt.Transform.Size()
	return preparationOf(f.opt.Transform, 3, h, w, f.opt.Norm, f.opt.Orient)
}
