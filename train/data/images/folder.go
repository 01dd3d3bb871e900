package images

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Folder is a data.Source of pictures laid out as ROOT/CLASS/FILE. Fields: image f32[3 H W], label i32.
type Folder struct {
	encoded
	root     string
	classes  []string
	pictures []file
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
	f := &Folder{root: root}
	if err := f.open(o, folderFiles{f}); err != nil {
		return nil, err
	}
	read := f.list
	if o.Listing != nil {
		read = f.listed
	}
	if err := read(); err != nil {
		return nil, err
	}
	return f, nil
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
	slices.SortStableFunc(f.pictures, func(a, b file) int { return cmp.Compare(a.label, b.label) })
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
	count := len(f.pictures)
	for _, n := range names {
		f.pictures = append(f.pictures, file{n, label})
	}
	if len(f.pictures) == count {
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
		case isPicture(name):
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

// isPicture says whether a name is one of a picture that can be read.
func isPicture(name string) bool {
	ext := strings.ToLower(filepath.Ext(name))
	return ext == ".jpg" || ext == ".jpeg" || ext == ".png" || ext == ".gif"
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

// Classes are the folder names by label.
func (f *Folder) Classes() []string { return f.classes }

// Empty lists the classes without pictures, in the order of labels.
func (f *Folder) Empty() []string { return empty(f, f.classes) }

// folderFiles are the pictures of a folder.
type folderFiles struct{ *Folder }

func (f folderFiles) count() int        { return len(f.pictures) }
func (f folderFiles) label(i int) int32 { return f.pictures[i].label }

func (f folderFiles) path(i int) string {
	return filepath.Join(f.root, f.classes[f.pictures[i].label], f.pictures[i].name)
}

func (f folderFiles) read(i int, buf []byte) ([]byte, error) { return readFile(f.path(i), buf) }

// Fingerprint hashes all names and the sizes of up to 4096 files, evenly chosen.
func (f *Folder) Fingerprint() (string, error) {
	h := fnv.New64a()
	step := max(1, len(f.pictures)/4096)
	for i, x := range f.pictures {
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
