package checkpoint

// Guard is a file system that calls check before every operation that changes it; an error of check becomes the operation's error. A store on it
// stops in the middle of a save, before the commit and before rotation, when another process has become the owner of its directory.
func Guard(fs FS, ask func() error) FS { return &guarded{fs, ask} }

type guarded struct {
	FS
	ask func() error
}

func (g *guarded) MkdirAll(dir string) error {
	if err := g.ask(); err != nil {
		return err
	}
	return g.FS.MkdirAll(dir)
}

func (g *guarded) Create(name string) (File, error) {
	if err := g.ask(); err != nil {
		return nil, err
	}
	return g.FS.Create(name)
}

func (g *guarded) Rename(from, to string) error {
	if err := g.ask(); err != nil {
		return err
	}
	return g.FS.Rename(from, to)
}

func (g *guarded) RemoveAll(name string) error {
	if err := g.ask(); err != nil {
		return err
	}
	return g.FS.RemoveAll(name)
}
