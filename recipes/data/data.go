package data

import (
	"embed"

	"github.com/gotrain/gotrain/train/data"
)

//go:embed fashion-mini flowers shakespeare stories260k
var files embed.FS

func init() { data.Bundle(files) }
