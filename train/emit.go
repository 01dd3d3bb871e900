package train

import (
	"time"

	"github.com/gotrain/gotrain/train/checkpoint"
)

func (t *Trainer) emitStart()                                        {}
func (t *Trainer) emitStep(r report)                                 {}
func (t *Trainer) emitEval(v map[string]float64, took time.Duration) {}
func (t *Trainer) emitSaved(s checkpoint.Saved)                      {}
func (t *Trainer) emitResumed(c *checkpoint.Checkpoint)              {}
func (t *Trainer) emitEnd(err error)                                 {}

type Sink interface{}
